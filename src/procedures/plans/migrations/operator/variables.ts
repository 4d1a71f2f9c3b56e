import { isDeepStrictEqual } from "node:util";
import { vendorNames } from "../../../../api/names.ts";
import { CLUSTER_KINDS } from "../../../../api/tables/cluster-kinds.ts";
import type { Draft, Network } from "./convert-manifest.ts";

/** A variable of the agent's container: the field that has its meaning, and how its value gets there. False: the value has no field. */
interface Row {
  field: string;
  carry(draft: Draft, value: string): boolean;
}

type Autodetection = NonNullable<Network["nodeAddressAutodetectionV4"]>;

const POOLS: Row = { field: "the IP pools, as they are", carry: () => true };
const WAY: Row = { field: "Installation spec.cni.ipam.type", carry: () => true };
const poolVariables = (family: 4 | 6) =>
  ["CIDR", "BLOCK_SIZE", "VXLAN", "NAT_OUTGOING", "NODE_SELECTOR"].map((name) => [`IPV${family}POOL_${name}`, POOLS]);
/** What the agent does where nothing is set. */
const HEALTH_PORT = "9099";

/** Every variable that users set in a plain manifest and that a custom resource can have. `DATAPLANE_*` is converted by the resource's own schema. */
export const VARIABLES: Readonly<Record<string, Row>> = {
  ...Object.fromEntries([...poolVariables(4), ...poolVariables(6), ["IPV4POOL_IPIP", POOLS]]),
  USE_POD_CIDR: WAY,
  NETWORKING_BACKEND: WAY,
  MTU: {
    field: "Installation spec.vendorNetwork.mtu",
    carry({ network }, value) {
      const mtu = Number(value || 0);
      if (mtu !== 0) network.mtu = mtu;
      return Number.isInteger(mtu);
    },
  },
  IP_AUTODETECTION_METHOD: {
    field: "Installation spec.vendorNetwork.nodeAddressAutodetectionV4",
    carry({ network, kind }, value) {
      const method = autodetection(value || "first-found");
      if (method && !isDeepStrictEqual(method, CLUSTER_KINDS[kind].addressAutodetection))
        network.nodeAddressAutodetectionV4 = method;
      return method !== undefined;
    },
  },
  IP6_AUTODETECTION_METHOD: {
    field: "Installation spec.vendorNetwork.nodeAddressAutodetectionV6",
    carry({ network }, value) {
      const method = autodetection(value);
      if (method) network.nodeAddressAutodetectionV6 = method;
      return method !== undefined || value === "";
    },
  },
  CNI_TYPE: {
    field: "Installation spec.cni.type",
    carry({ spec }, value) {
      const type = (["AmazonVPC", "AzureVNET"] as const).find((one) => one === value);
      if (type) spec.cni = { ...spec.cni, type, ipam: { type } };
      return type !== undefined || value === "" || value === "Vendor";
    },
  },
  HOST_PORTS: {
    field: "Installation spec.vendorNetwork.hostPorts.portMapping",
    carry({ network, ebpf }, value) {
      if (value !== "Disabled") return true;
      if (!ebpf) network.hostPorts = { portMapping: "Disabled" };
      return !ebpf;
    },
  },
  METRICS_PORT: {
    field: "Installation spec.nodeMetricsPort",
    carry({ spec }, value) {
      const port = Number(value || 0);
      if (port !== 0) spec.nodeMetricsPort = port;
      return Number.isInteger(port);
    },
  },
  HEALTH_PORT: {
    field: "DataplaneConfiguration spec.healthPort",
    carry({ configuration }, value) {
      const port = Number(value || HEALTH_PORT);
      if (value !== "" && value !== HEALTH_PORT) configuration.healthPort ??= port;
      return Number.isInteger(port);
    },
  },
  CGROUP_V2_PATH: {
    field: "DataplaneConfiguration spec.cgroupV2Path",
    carry({ configuration }, value) {
      if (value !== "" && value !== vendorNames.paths.cgroupV2) configuration.cgroupV2Path ??= value;
      return true;
    },
  },
};

/** The words of the agent's environment, as the Installation has them. */
function autodetection(text: string): Autodetection | undefined {
  const [, word = text, value = ""] = /^([a-z-]+)=(.+)$/.exec(text) ?? [];
  switch (word) {
    case "first-found":
      return { firstFound: true };
    case "kubernetes-internal-ip":
    case "orchestrator-internal-ip":
      return { orchestrator: "NodeInternalIP" };
    case "can-reach":
      return { canReach: value };
    case "interface":
      return { interface: value };
    case "skip-interface":
      return { skipInterface: value };
    case "cidr":
      return { cidrs: value.split(",") };
    default:
      return undefined;
  }
}
