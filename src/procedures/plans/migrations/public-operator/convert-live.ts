import { isDeepStrictEqual } from "node:util";
import type { Names } from "../../../../api/names.ts";
import type { KubeObject } from "../../../../api/object.ts";
import type { ClusterKind } from "../../../../api/tables/cluster-kinds.ts";
import { nameOf, targetOf } from "../../../actions/objects/target.ts";
import { fieldAt } from "../../../field-at.ts";
import type { CarriedEdit } from "../../../merge/merge-manifest.ts";
import type { Found } from "../../upgrade/inventory.ts";
import type { ManifestWorkload } from "../operator/manifest-view.ts";
import {
  AGENT,
  CNI_INSTALLER,
  type CniConfiguration,
  containerIn,
  type LiveManifest,
  liveVariables,
  parseCniConfiguration,
} from "./live-manifest.ts";
import { publicEdits } from "./public-edits.ts";
import { type Outcome, outcomeOf, type VariableContext } from "./public-variables.ts";
import { cniRefusals, pickedPools, poolRefusals, workloadRefusals } from "./refusals.ts";

/** What the public operator's own conversion is foreseen from. */
interface LiveInstallation {
  live: LiveManifest;
  edits: readonly CarriedEdit[];
  pools: readonly KubeObject[];
  kind: ClusterKind;
  /** FelixConfiguration `default`. */
  configuration: KubeObject | undefined;
  /** The address of the API server for agents, in the manifest's namespace. */
  endpointMap: KubeObject | undefined;
}

export interface PublicConversion {
  /** What vendorctl asks for: only what the operator does not find by itself. */
  installation: Record<string, unknown>;
  carried: { edit: string; field: string }[];
  notCarried: Found[];
  /** The pools that the operator lists, and with that takes over. */
  pools: string[];
  ebpf: boolean;
}

/** The settings that a variable has, and what becomes of it. */
export interface VariableOutcome {
  container: string;
  name: string;
  outcome: Outcome;
}

/** What the public operator will do to a plain manifest, without asking it. Pure. */
export function convertLive(installed: LiveInstallation, names: Names): PublicConversion {
  const { live, edits, pools, kind, configuration } = installed;
  const variables = liveVariables(live);
  const of = (container: string) => (name: string) =>
    variables.find((one) => one.container === container && one.name === name)?.value;
  const agent = of(AGENT);
  const prefix = agent("FELIX_INTERFACEPREFIX") ?? "cali";
  const isCalicoCni = prefix === "cali";
  const backend = agent("CALICO_NETWORKING_BACKEND") || "bird";
  const text = of(CNI_INSTALLER)("CNI_NETWORK_CONFIG");
  const cni = text === undefined ? undefined : parseCniConfiguration(text);
  const context: VariableContext = {
    ...{ value: agent, isCalicoCni, hasBgp: backend === "bird" },
    readsCniMtu: !cni || cni.plugins.find(({ type }) => type === "calico")?.mtu === -1,
  };
  const outcomes = variables.map(
    (variable): VariableOutcome => ({
      ...{ container: variable.container, name: variable.name },
      outcome: outcomeOf(variable, context),
    }),
  );
  const planes = dataplanes(agent, configuration);
  const blocking = [
    ...workloadRefusals(live, kind),
    ...variableRefusals(outcomes, live.agents),
    ...(isCalicoCni ? cniRefusals(cni, { backend, settings: settingsOf(live, names) }) : []),
    ...poolRefusals(pools, { cni, backend }),
    ...mtuRefusals({ agent, installer: of(CNI_INSTALLER), cni, agents: live.agents }),
    ...dataplaneRefusals(planes, installed, names),
  ];
  const { carried, lost } = publicEdits(edits, { outcomes, live, configuration }, names);
  const told = new Set(blocking.map(({ name }) => name));
  return {
    installation: ourPart(live, names),
    carried,
    notCarried: [...blocking, ...lost.filter(({ name }) => !told.has(name))],
    pools: isCalicoCni ? pickedPools(pools).map(({ metadata }) => metadata.name) : [],
    ebpf: planes.includes("BPF"),
  };
}

function settingsOf({ agents }: LiveManifest, { manifests }: Names): KubeObject {
  const { namespace = "" } = agents.metadata;
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name: manifests.configMap, namespace } };
}

function variableRefusals(outcomes: readonly VariableOutcome[], agents: KubeObject): Found[] {
  return outcomes.flatMap(({ container, name, outcome }): Found[] => {
    if (!("refused" in outcome)) return [];
    const at = `${nameOf(targetOf(agents))}, container ${container}`;
    return [{ name, at, fate: "blocks", why: outcome.refused, todo: outcome.todo }];
  });
}

type Values = (name: string) => string | undefined;

/** All of them must be one number; without a variable for it the plugin has 1500. */
function mtuRefusals(from: {
  agent: Values;
  installer: Values;
  cni: CniConfiguration | undefined;
  agents: KubeObject;
}): Found[] {
  const { agent, installer, cni, agents } = from;
  const names = ["IPINIPMTU", "VXLANMTU", "VXLANMTUV6", "WIREGUARDMTU", "WIREGUARDMTUV6"].map(
    (name) => `FELIX_${name}`,
  );
  const found = names.flatMap((name) => (agent(name) === undefined ? [] : [{ name, mtu: Number(agent(name)) }]));
  const plugin = cni?.plugins.find(({ type }) => type === "calico");
  if (plugin) {
    const variable = Number(installer("CNI_MTU") ?? 1500);
    found.push({ name: "mtu of the CNI configuration", mtu: plugin.mtu === -1 ? variable : (plugin.mtu ?? 0) });
  }
  const [first] = found;
  const other = found.find(({ mtu }) => mtu !== first?.mtu);
  if (!first || !other || Number.isNaN(first.mtu) || Number.isNaN(other.mtu)) return [];
  const why = `The operator has one MTU: ${first.name} is ${first.mtu}, ${other.name} is ${other.mtu}.`;
  return [{ name: "mtu", at: nameOf(targetOf(agents)), fate: "blocks", why, todo: "Set all to one value." }];
}

/** The planes that the manifest asks for, by variables and by the resource. */
function dataplanes(agent: Values, configuration: KubeObject | undefined): string[] {
  const has = (name: string, value: string) => agent(name)?.toLowerCase() === value;
  const bpf = fieldAt(configuration, "spec.bpfEnabled") === true || has("FELIX_BPFENABLED", "true");
  const nft = fieldAt(configuration, "spec.nftablesMode") === "Enabled" || has("FELIX_NFTABLESMODE", "enabled");
  return [...(bpf ? ["BPF"] : []), ...(nft && !has("FELIX_NFTABLESMODE", "disabled") ? ["Nftables"] : [])];
}

function dataplaneRefusals(
  planes: readonly string[],
  { configuration, endpointMap, live }: LiveInstallation,
  names: Names,
): Found[] {
  const at = nameOf(targetOf(live.agents));
  const blocks = (name: string, why: string, todo: string): Found => ({ name, at, fate: "blocks", why, todo });
  const { kind } = names.kinds.dataplaneConfiguration;
  const map = names.endpointMap.name;
  return [
    ...(configuration
      ? []
      : [
          blocks(
            kind,
            `The operator reads ${kind} default, and there is none.`,
            "Start the agents first: they make it.",
          ),
        ]),
    ...(planes.length > 1
      ? [blocks("linuxDataplane", "Both eBPF and nftables are asked for.", "Disable one of the two.")]
      : []),
    ...(planes.includes("BPF") && !endpointMap
      ? [
          blocks(
            map,
            `With eBPF the operator copies ConfigMap ${map} of kube-system, and there is none.`,
            "Create it with the address of the API server.",
          ),
        ]
      : []),
  ];
}

/** Where images come from, who may pull them, and where controllers run: the operator's conversion leaves these out. */
function ourPart({ agents, controllers, typha }: LiveManifest, names: Names): Record<string, unknown> {
  const image = containerIn(agents.spec.template.spec, AGENT)?.image;
  const secrets = [agents, controllers, typha].flatMap((one) => one?.spec.template.spec.imagePullSecrets ?? []);
  const imagePullSecrets = [...new Set(secrets.map(({ name }) => name))].map((name) => ({ name }));
  const tolerations = foreignTolerations(controllers);
  return {
    variant: names.variant,
    ...imageSource(image),
    ...(imagePullSecrets.length > 0 ? { imagePullSecrets } : {}),
    ...(tolerations.length > 0 ? { controlPlaneTolerations: tolerations } : {}),
  };
}

const CONTROL_PLANE: readonly object[] = [
  { key: "CriticalAddonsOnly", operator: "Exists" },
  { key: "node-role.kubernetes.io/master", effect: "NoSchedule" },
  { key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" },
];

/** Those that the operator's controllers do not have by themselves. */
function foreignTolerations(controllers: ManifestWorkload | undefined): object[] {
  const { tolerations = [] } = controllers?.spec.template.spec ?? {};
  return tolerations.filter((one) => !CONTROL_PLANE.some((known) => isDeepStrictEqual(known, one)));
}

/** `quay.io/calico` is where it is published; `registry` ends in a slash as the operator writes it. */
function imageSource(image: string | undefined): Record<string, string> {
  const [, place, imagePrefix] = /^(?:(.+)\/)?([^/:@]*?)node(?:[:@].+)?$/.exec(image ?? "") ?? [];
  if (place === undefined || place === "quay.io/calico") return imagePrefix ? { imagePrefix } : {};
  const [registry = "", ...path] = place.split("/");
  const isHost = /[.:]|^localhost$/.test(registry);
  return {
    registry: isHost ? `${registry}/` : "docker.io/",
    imagePath: (isHost ? path : [registry, ...path]).join("/"),
    ...(imagePrefix ? { imagePrefix } : {}),
  };
}
