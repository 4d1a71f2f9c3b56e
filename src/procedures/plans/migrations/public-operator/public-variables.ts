import { felixSetting } from "./felix-settings.ts";
import { AGENT, CNI_INSTALLER, type LiveVariable } from "./live-manifest.ts";

/**
 * What the public operator's conversion does with one variable of the agents' pods. `carried`: to this field. `ignored`: it ends with the manifest; the
 * field that has its meaning, where there is one. `refused`: the operator goes Degraded and nothing moves.
 */
export type Outcome = { carried: string } | { ignored: string | undefined } | { refused: string; todo: string };

/** Values of other variables of the same container, and which CNI plugin is in use. */
export interface VariableContext {
  value(name: string): string | undefined;
  isCalicoCni: boolean;
  hasBgp: boolean;
  /** The CNI configuration has the variable `CNI_MTU` for its MTU. */
  readsCniMtu: boolean;
}

type Row = (value: string, context: VariableContext) => Outcome;

const NETWORK = "Installation spec.calicoNetwork";
const DO_NOTHING = "the operator sets it itself";

const carried =
  (field: string): Row =>
  () => ({ carried: field });
const ignored =
  (field?: string): Row =>
  () => ({ ignored: field });
const refused = (why: string, todo: string): Outcome => ({ refused: why, todo });

/** Only one value is what the operator's own installation does. */
function only(...values: readonly string[]): Row {
  return (value) =>
    values.includes(value.toLowerCase())
      ? { carried: DO_NOTHING }
      : refused(`The operator knows ${values.join(" or ")} only.`, `Set it to ${values[0]}, or remove it.`);
}

const DETECTION = /^(|first-found|kubernetes-internal-ip|(interface|can-reach|skip-interface|cidr)=.*)$/;

const detected =
  (field: string): Row =>
  (value) =>
    DETECTION.test(value)
      ? { carried: `${NETWORK}.${field}` }
      : refused(
          "The operator has no such method.",
          "Use first-found, can-reach=, interface=, skip-interface= or cidr=.",
        );

const mtu: Row = (value) =>
  /^[+-]?\d+$/.test(value)
    ? { carried: `${NETWORK}.mtu` }
    : refused("The operator reads a number here.", "Set it to a number, or remove it.");

/** What the conversion looks at only where the public CNI plugin is in use. */
const ofCalicoCni =
  (row: Row): Row =>
  (value, context) =>
    context.isCalicoCni ? row(value, context) : UNKNOWN;

const UNKNOWN = refused(
  "The operator's conversion does not know this variable, and stops.",
  "Remove it from the DaemonSet, and wait until the agents are ready again.",
);

const poolRows = ([4, 6] as const).flatMap((family) =>
  ["CIDR", "BLOCK_SIZE", "IPIP", "VXLAN", "NAT_OUTGOING", "NODE_SELECTOR", "DISABLE_BGP_EXPORT"].map(
    (name) => [`CALICO_IPV${family}POOL_${name}`, carried("the IP pools, as they are")] as const,
  ),
);

const BACKENDS: readonly string[] = ["", "bird", "vxlan", "none"];

/** Of the agent's container; every other `FELIX_*` is a setting of FelixConfiguration. */
const OF_AGENT: Readonly<Record<string, Row>> = {
  ...Object.fromEntries(poolRows),
  DATASTORE_TYPE: only("kubernetes"),
  CALICO_NETWORKING_BACKEND: (value, { isCalicoCni }) => {
    if (!isCalicoCni) return only("none")(value, NO_CONTEXT);
    if (BACKENDS.includes(value)) return { carried: `${NETWORK}.bgp` };
    return refused("The operator knows bird, vxlan and none.", "Set it to one of these.");
  },
  IP: (value, { isCalicoCni }) => (isCalicoCni ? only("autodetect", "none") : only(""))(value, NO_CONTEXT),
  IP6: ofCalicoCni(only("none", "autodetect")),
  IP_AUTODETECTION_METHOD: ofCalicoCni((value, context) =>
    context.value("IP") === "none" ? { ignored: undefined } : detected("nodeAddressAutodetectionV4")(value, context),
  ),
  IP6_AUTODETECTION_METHOD: ofCalicoCni((value, context) => {
    const family = context.value("IP6");
    if (family === undefined) return UNKNOWN;
    return (family === "none" ? only("none") : detected("nodeAddressAutodetectionV6"))(value, context);
  }),
  FELIX_IPV6SUPPORT: (value, context) => {
    if (!context.isCalicoCni) return { carried: "FelixConfiguration spec.ipv6Support" };
    return only(context.value("IP6") === "autodetect" ? "true" : "false")(value, context);
  },
  CALICO_ROUTER_ID: ofCalicoCni((value, context) => {
    const isIPv6Only = context.value("IP") === "none" && context.value("IP6") === "autodetect";
    return isIPv6Only && context.hasBgp ? only("hash")(value, context) : UNKNOWN;
  }),
  NO_DEFAULT_POOLS: (value, context) => (context.isCalicoCni ? UNKNOWN : only("true")(value, context)),
  FELIX_DEFAULTENDPOINTTOHOSTACTION: only("accept"),
  FELIX_INTERFACEPREFIX: (value) =>
    ["cali", "eni", "azv", "gke"].includes(value)
      ? { carried: "Installation spec.cni.type" }
      : refused("The operator finds the CNI plugin by cali, eni, azv or gke.", "Set it to the prefix of your plugin."),
  FELIX_IPTABLESMANGLEALLOWACTION: (value, context) => {
    const prefix = context.value("FELIX_INTERFACEPREFIX");
    return prefix === "eni" || prefix === "gke"
      ? only("return")(value, context)
      : felixRow("FELIX_IPTABLESMANGLEALLOWACTION", value);
  },
  FELIX_IPTABLESFILTERALLOWACTION: (value, context) =>
    context.value("FELIX_INTERFACEPREFIX") === "gke"
      ? only("return")(value, context)
      : felixRow("FELIX_IPTABLESFILTERALLOWACTION", value),
  ...Object.fromEntries(
    ["IPINIPMTU", "VXLANMTU", "VXLANMTUV6", "WIREGUARDMTU", "WIREGUARDMTUV6"].map((name) => [`FELIX_${name}`, mtu]),
  ),
  FELIX_PROMETHEUSMETRICSENABLED: (value) =>
    value.toLowerCase() === "true" ? { carried: "Installation spec.nodeMetricsPort" } : { carried: DO_NOTHING },
  FELIX_PROMETHEUSMETRICSPORT: (value, { value: other }) => {
    if (other("FELIX_PROMETHEUSMETRICSENABLED")?.toLowerCase() !== "true") return { ignored: undefined };
    const port = Number(value);
    if (Number.isInteger(port) && port > 0 && port < 65_536) return { carried: "Installation spec.nodeMetricsPort" };
    return refused("It is no port.", "Set it to a number from 1 to 65535, or remove it.");
  },
  FELIX_BPFENABLED: carried(`${NETWORK}.linuxDataplane`),
  FELIX_NFTABLESMODE: carried(`${NETWORK}.linuxDataplane`),
  FELIX_IPTABLESBACKEND: (value) =>
    value.toLowerCase() === "auto" ? { carried: DO_NOTHING } : felixRow("FELIX_IPTABLESBACKEND", value),
  FELIX_LOGSEVERITYSCREEN: ignored("logSeverityScreen"),
  FELIX_LOGSEVERITYSYS: ignored("logSeveritySys"),
  FELIX_HEALTHENABLED: ignored("healthEnabled"),
  FELIX_USAGEREPORTINGENABLED: ignored("usageReportingEnabled"),
  // The operator always runs Typha, and its agents find it by themselves.
  FELIX_TYPHAK8SSERVICENAME: carried("the operator's own Typha"),
  WAIT_FOR_DATASTORE: ignored(),
  CLUSTER_TYPE: ignored(),
  CALICO_DISABLE_FILE_LOGGING: ignored(),
};

const NO_CONTEXT: VariableContext = {
  ...{ value: () => undefined, isCalicoCni: true, hasBgp: false, readsCniMtu: true },
};

const OF_CNI_INSTALLER: Readonly<Record<string, Row>> = {
  CNI_CONF_NAME: only("10-calico.conflist"),
  CNI_NETWORK_CONFIG: carried(`${NETWORK}, as far as the CNI configuration has fields there`),
  CNI_MTU: (value, context) => (context.readsCniMtu ? mtu(value, context) : UNKNOWN),
  SLEEP: ignored(),
};

const OF_IPAM_UPGRADE: Readonly<Record<string, Row>> = { CALICO_NETWORKING_BACKEND: carried(`${NETWORK}.bgp`) };

const ROWS: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  [AGENT]: OF_AGENT,
  [CNI_INSTALLER]: OF_CNI_INSTALLER,
  "upgrade-ipam": OF_IPAM_UPGRADE,
};

/** Variables that must name the node, and from where the conversion takes that. */
const NODE_NAMES: Readonly<Record<string, string>> = {
  [AGENT]: "NODENAME",
  [CNI_INSTALLER]: "KUBERNETES_NODE_NAME",
  "upgrade-ipam": "KUBERNETES_NODE_NAME",
};

/** The address of the API server for agents, which `calico-bpf.yaml` has as variables. */
const ADDRESS_VARIABLES: readonly string[] = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"];
const ADDRESS = refused(
  "The operator's conversion reads the address of the API server from a ConfigMap only, and stops.",
  "Create ConfigMap kubernetes-services-endpoint in kube-system with it, which the agents read too, and remove the variable.",
);

export function outcomeOf({ container, name, value, from }: LiveVariable, context: VariableContext): Outcome {
  if (NODE_NAMES[container] === name) {
    // What upgraded addresses is not looked at.
    if (from === "spec.nodeName" || container === "upgrade-ipam") return { carried: DO_NOTHING };
    return refused("The operator expects the name of the node here.", "Make it a fieldRef to spec.nodeName.");
  }
  if (ADDRESS_VARIABLES.includes(name)) return ADDRESS;
  const row = ROWS[container]?.[name];
  const known =
    row ?? (container === AGENT && name.startsWith("FELIX_") ? (text: string) => felixRow(name, text) : undefined);
  if (!known) return UNKNOWN;
  if (value === undefined)
    return refused("The operator reads variables from text and from ConfigMaps only.", "Make it a plain value.");
  return known(value, context);
}

function felixRow(name: string, value: string): Outcome {
  const setting = felixSetting(name, value);
  if (!setting) return UNKNOWN;
  if (setting.understood) return { carried: `FelixConfiguration spec.${setting.field}` };
  return refused(
    "The operator does not understand this value.",
    "Set the field of FelixConfiguration default instead.",
  );
}
