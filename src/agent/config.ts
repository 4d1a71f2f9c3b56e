import { existsSync } from "node:fs";
import { vendorNames } from "../api/names.ts";
import { LOOPBACK } from "../cluster/program.ts";
import { errors } from "./errors.ts";

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
  directories: AgentDirectories;
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

export type Env = Readonly<Record<string, string | undefined>>;

export function readAgentConfig(env: Env): AgentConfig {
  return {
    nodeName: required(env, "NODENAME", "the name of the node this runs on"),
    podName: env["POD_NAME"] || "",
    namespace: env["NAMESPACE"] || vendorNames.namespaces.system,
    version: env["VENDOR_VERSION"] || "",
    healthHost: env["HEALTH_HOST"] || LOOPBACK,
    healthPort: number(env, "HEALTH_PORT", 9099, 65_535),
    metricsPort: env["METRICS_PORT"] ? number(env, "METRICS_PORT", 0, 65_535) : undefined,
    metricsHost: env["METRICS_HOST"] || LOOPBACK,
    connectsPods: (env["CNI_TYPE"] || "Vendor") === "Vendor",
    hostPorts: env["HOST_PORTS"] !== "Disabled",
    mtu: number(env, "MTU", 0, 65_535),
    autodetection: {
      v4: env["IP_AUTODETECTION_METHOD"] || "first-found",
      v6: env["IP6_AUTODETECTION_METHOD"] || undefined,
    },
    cgroupV2Path: env["CGROUP_V2_PATH"] || vendorNames.paths.cgroupV2,
    rollbackSeconds: number(env, "DEAD_MAN_SECONDS", 60, 3_600),
    overlayProbeSeconds: Math.max(1, number(env, "OVERLAY_PROBE_SECONDS", 10, 3_600)),
    directories: agentDirectories(env),
  };
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

/** A container without privileges sees the node's at a place of its own. */
function firstThere(...paths: readonly string[]): string {
  return paths.find((path) => existsSync(path)) ?? (paths.at(-1) as string);
}

function required(env: Env, name: string, what: string): string {
  const text = env[name];
  if (!text) throw errors.AGENT_ENV_MISSING(name, what);
  return text;
}

function number(env: Env, name: string, otherwise: number, most: number): number {
  const text = env[name];
  if (!text) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > most) {
    throw errors.AGENT_ENV(name, text, `a whole number up to ${most}`);
  }
  return value;
}
