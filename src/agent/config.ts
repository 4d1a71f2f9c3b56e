import { existsSync } from "node:fs";
import { join } from "node:path";
import { vendorNames } from "../api/names.ts";
import type { DataplaneConfiguration } from "../api/resources/dataplane-configuration.ts";
import { LOOPBACK } from "../cluster/program.ts";
import { ETCD_VARIABLES, readEtcdOptions } from "../datastore/config.ts";
import type { EtcdOptions } from "../datastore/etcd/etcd-connection.ts";
import type { Pool } from "../ipam/ipam-kinds.ts";
import { readDataplaneVariables } from "./dataplane-variables.ts";
import { flag, number, oneOf, required } from "./env-values.ts";
import { errors } from "./errors.ts";
import { poolVariables, readFirstPools } from "./ipam/first-pools.ts";
import { isDetectionMethod } from "./node/detect-address.ts";

const HEALTH_PORT = 9099;
const DETECTION_METHODS =
  "first-found, kubernetes-internal-ip, can-reach=HOST, interface=REGEX, skip-interface=REGEX or cidr=CIDR";

/** What the container's environment says, read once. What the cluster says (DataplaneConfiguration) is followed, not configured. */
export interface AgentConfig {
  nodeName: string;
  podName: string;
  namespace: string;
  version: string;
  healthHost: string;
  healthPort: number;
  /** Undefined: no metrics are served. */
  metricsPort: number | undefined;
  metricsHost: string;
  /** Whether pods are connected by us; otherwise only policy is ours. */
  connectsPods: boolean;
  /** Pods get addresses from their node's podCIDRs, not from pools. */
  usesPodCidr: boolean;
  /** Whether routes and VXLAN to other nodes are ours; otherwise the network, or an overlay, leads to them. */
  connectsNodes: boolean;
  /** The node speaks BGP: its pod has a container that runs BIRD. */
  bgp: boolean;
  /** Created once, for a family that has no pool. */
  firstPools: readonly Pool[];
  /** Fields of the DataplaneConfiguration set by variables: they win over the resource. */
  configuration: DataplaneConfiguration["spec"];
  /** Variables with that prefix that are no such field. */
  unknownVariables: readonly string[];
  /** Whether host ports of pods are served; by us, as far as pods are connected by us. */
  hostPorts: boolean;
  /** 0: found from the uplink. */
  mtu: number;
  autodetection: { v4: string; v6: string | undefined };
  cgroupV2Path: string;
  /** How long eBPF may take to be confirmed before the node reverts to the old data plane. */
  rollbackSeconds: number;
  /** How often other nodes are probed through the overlay. */
  overlayProbeSeconds: number;
  /** Our CNI configuration, where this container sees it; undefined: it is not ours to look after. */
  cniConfiguration: string | undefined;
  directories: AgentDirectories;
  /** How etcd is reached, where the service keeps its objects there and not in the Kubernetes API. */
  etcd: EtcdOptions | undefined;
  /** The kubelet's own, where volumes of sidecars are; undefined: this agent's pod does not see it. */
  kubeletDir: string | undefined;
}

/** Where the agent's files are. Each can be moved by its variable, so that many nodes can share one file system. */
export interface AgentDirectories {
  /** Sockets: `cni.sock` for the plugin, `admin.sock` for `vendor node show`. */
  run: string;
  /** What outlives the agent: a file per pod, the last good address of the API server. */
  state: string;
  /** Programs and maps are pinned below it, nothing else is there. On a BPF file system. */
  bpf: string;
  /** `net` of `/proc/sys`, writable. */
  sysctl: string;
}

/**
 * Every variable the agent reads, and what it is: there is no reading of another one. Published files render only what is here, and the
 * guide prints it.
 */
export const AGENT_VARIABLES = {
  NODENAME: "name of the node (required)",
  POD_NAME: "name of the agent's pod",
  NAMESPACE: `namespace of the agent's pod (default: ${vendorNames.namespaces.system})`,
  VENDOR_VERSION: "release that the agent reports (default: its own)",
  HEALTH_HOST: `address of /livez and /readyz (default: ${LOOPBACK})`,
  HEALTH_PORT: `port of /livez and /readyz (default: ${HEALTH_PORT})`,
  METRICS_HOST: `address of /metrics (default: ${LOOPBACK})`,
  METRICS_PORT: "port of /metrics (default: metrics are not served)",
  DATASTORE_TYPE: "orchestrator: objects are kept in the Kubernetes API; etcd: in etcd (default: orchestrator)",
  ...ETCD_VARIABLES,
  CNI_TYPE: "Vendor: the agent connects pods; another value: only policy is enforced (default: Vendor)",
  HOST_PORTS: "Disabled: host ports of pods are not served (default: Enabled)",
  MTU: "MTU of pods; 0: found from the node's interfaces (default: 0)",
  USE_POD_CIDR: "true: pods get addresses from spec.podCIDRs of their Node, and no pool is created (default: false)",
  NETWORKING_BACKEND:
    "vxlan: the agent writes routes to other nodes, and VXLAN; none: the network, or an overlay, leads to them (default: vxlan)",
  BGP: "Enabled: the agent configures BIRD, which runs in a container of the same pod (default: Disabled)",
  IP_AUTODETECTION_METHOD: `how the node's IPv4 address is found: ${DETECTION_METHODS} (default: first-found)`,
  IP6_AUTODETECTION_METHOD: "the same for IPv6 (default: the node has no IPv6 address)",
  ...poolVariables(4),
  ...poolVariables(6),
  CGROUP_V2_PATH: `cgroup that eBPF programs of sockets are attached to (default: ${vendorNames.paths.cgroupV2})`,
  DEAD_MAN_SECONDS: "seconds in which eBPF must be confirmed before the node reverts to nftables (default: 60)",
  OVERLAY_PROBE_SECONDS: "seconds between probes of other nodes through VXLAN (default: 10)",
  CNI_CONF_DIR: "the node's directory of CNI configurations, as the container sees it (default: it is not looked at)",
  CNI_CONF_NAME: "file name of our configuration in it",
  KUBELET_DIR: "the kubelet's own directory, for volumes of sidecars (default: sidecars are not served)",
  RUN_DIR: "directory of sockets (default: /var/run/vendor)",
  STATE_DIR: "directory of records of pods (default: /var/lib/vendor)",
  BPF_ROOT: "BPF file system (default: /sys/fs/bpf)",
  SYSCTL_DIR: "writable net of /proc/sys (default: /host/proc/sys/net, else /proc/sys/net)",
} as const;

type AgentVariable = keyof typeof AGENT_VARIABLES;
export type Env = Readonly<Partial<Record<AgentVariable, string | undefined>>>;

export function readAgentConfig(env: Env): AgentConfig {
  const usesPodCidr = flag(env, "USE_POD_CIDR", false);
  const connectsNodes = oneOf(env, "NETWORKING_BACKEND", ["vxlan", "none"], "vxlan") === "vxlan";
  const { spec: configuration, unknown: unknownVariables } = readDataplaneVariables(env);
  const firstPools = readFirstPools(env, { vxlan: connectsNodes });
  oneOf(env, "DATASTORE_TYPE", ["orchestrator", "kubernetes", "etcd"], "orchestrator");
  return {
    nodeName: required(env, "NODENAME", "the name of the node this runs on"),
    podName: env["POD_NAME"] || "",
    namespace: env["NAMESPACE"] || vendorNames.namespaces.system,
    version: env["VENDOR_VERSION"] || "",
    healthHost: env["HEALTH_HOST"] || LOOPBACK,
    healthPort: number(env, "HEALTH_PORT", HEALTH_PORT, 65_535),
    metricsPort: env["METRICS_PORT"] ? number(env, "METRICS_PORT", 0, 65_535) : undefined,
    metricsHost: env["METRICS_HOST"] || LOOPBACK,
    connectsPods: (env["CNI_TYPE"] || "Vendor") === "Vendor",
    usesPodCidr,
    connectsNodes,
    bgp: flag(env, "BGP", false),
    configuration,
    unknownVariables,
    firstPools: usesPodCidr ? [] : firstPools,
    hostPorts: env["HOST_PORTS"] !== "Disabled",
    mtu: number(env, "MTU", 0, 65_535),
    autodetection: {
      v4: detectionMethod(env, "IP_AUTODETECTION_METHOD") ?? "first-found",
      v6: detectionMethod(env, "IP6_AUTODETECTION_METHOD"),
    },
    cgroupV2Path: env["CGROUP_V2_PATH"] || vendorNames.paths.cgroupV2,
    rollbackSeconds: number(env, "DEAD_MAN_SECONDS", 60, 3_600),
    overlayProbeSeconds: Math.max(1, number(env, "OVERLAY_PROBE_SECONDS", 10, 3_600)),
    cniConfiguration:
      env["CNI_CONF_DIR"] && env["CNI_CONF_NAME"] ? join(env["CNI_CONF_DIR"], env["CNI_CONF_NAME"]) : undefined,
    directories: agentDirectories(env),
    etcd: readEtcdOptions(env),
    kubeletDir: env["KUBELET_DIR"] || undefined,
  };
}

/** Every variable `vendor node-init` reads, and what it is. */
export const INIT_VARIABLES = {
  CGROUP_V2_PATH: "where cgroup v2 is mounted (default: the node runs no eBPF, and nothing is mounted)",
  BPF_ROOT: "where the BPF file system is mounted (default: /sys/fs/bpf)",
} as const;

export function readInitConfig(env: Readonly<Partial<Record<keyof typeof INIT_VARIABLES, string | undefined>>>): {
  cgroup: string | undefined;
  bpf: string;
} {
  return { cgroup: env["CGROUP_V2_PATH"] || undefined, bpf: env["BPF_ROOT"] || "/sys/fs/bpf" };
}

function agentDirectories(env: Env): AgentDirectories {
  return {
    run: env["RUN_DIR"] || "/var/run/vendor",
    state: env["STATE_DIR"] || "/var/lib/vendor",
    bpf: `${env["BPF_ROOT"] || "/sys/fs/bpf"}/vendor`,
    sysctl: env["SYSCTL_DIR"] || firstThere("/host/proc/sys/net", "/proc/sys/net"),
  };
}

/** The configuration of `vendor node ...` in a shell: the same directories, all of them optional. */
export function shellDirectories(): AgentDirectories {
  return agentDirectories(process.env);
}

/** Where `vendor node remove` looks for the volume driver. */
export function shellKubeletDir(): string {
  return (process.env as Env)["KUBELET_DIR"] || "/var/lib/kubelet";
}

/** A container without privileges sees the node's at a place of its own. */
function firstThere(...paths: readonly string[]): string {
  return paths.find((path) => existsSync(path)) ?? (paths.at(-1) as string);
}

/** Where `vendor node ready` asks, in the agent's own container. */
export function shellHealthAddress(): { host: string; port: number } {
  const env: Env = process.env;
  return { host: env["HEALTH_HOST"] || LOOPBACK, port: number(env, "HEALTH_PORT", HEALTH_PORT, 65_535) };
}

function detectionMethod(env: Env, name: "IP_AUTODETECTION_METHOD" | "IP6_AUTODETECTION_METHOD"): string | undefined {
  const text = env[name];
  if (text && !isDetectionMethod(text)) throw errors.AGENT_ENV(name, text, DETECTION_METHODS);
  return text || undefined;
}
