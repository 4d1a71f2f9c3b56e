/** The words of the Container Network Interface, and what the plugin and the node's agent say to each other over a socket. */

export const CNI_VERSIONS = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] as const;

export const CNI_COMMANDS = ["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"] as const;
export type CniCommand = (typeof CNI_COMMANDS)[number];

/** Codes below 100 are the specification's; those from 100 on a plugin's own. */
export const CNI_CODES = {
  incompatibleVersion: 1,
  unsupportedField: 2,
  containerUnknown: 3,
  invalidEnvironment: 4,
  ioFailure: 5,
  decodingFailure: 6,
  invalidConfiguration: 7,
  tryAgainLater: 11,
  notAvailable: 50,

  failed: 100,
} as const;

/** One call of the plugin, as the agent gets it: one line of JSON. The answer is one line too. */
export interface CniRequest {
  command: Exclude<CniCommand, "VERSION">;
  containerId: string;
  /** Path of the pod's network namespace; empty where there is none any more. */
  netns: string;
  /** Name of the interface inside. */
  ifname: string;
  /** `CNI_ARGS`, read. */
  args: Record<string, string>;
  config: CniConfig;
}

/** The part of a conflist that is ours, as the runtime gives it on standard input. */
export interface CniConfig {
  cniVersion: string;
  name: string;
  type: string;
  /** Where the agent listens. */
  socket?: string;
  mtu?: number;
  ipam?: { type?: string; subnet?: string };
  container_settings?: { allow_ip_forwarding?: boolean };
  policy_setup_timeout_seconds?: number;
  prevResult?: CniResult;
  "cni.dev/valid-attachments"?: { containerID: string; ifname: string }[];
  "cni.dev/attachments"?: { containerID: string; ifname: string }[];
}

export type CniAnswer = { result?: CniResult } | { error: CniError };

export interface CniError {
  code: number;
  msg: string;
  details?: string;
}

/** In the form of version 1.1.0; the plugin prints it in the form it was asked for. */
export interface CniResult {
  cniVersion?: string;
  interfaces: CniInterface[];
  ips: CniAddress[];
  routes: CniRoute[];
  dns?: Record<string, unknown>;
}

export interface CniInterface {
  name: string;
  mac?: string;
  mtu?: number;
  /** Path of the namespace it is in; absent on the host. */
  sandbox?: string;
}

export interface CniAddress {
  /** With the length of its prefix. */
  address: string;
  gateway?: string;
  /** Index into `interfaces`. */
  interface?: number;
}

export interface CniRoute {
  dst: string;
  gw?: string;
}

/** An interface whose DEL found no agent: the plugin notes it in a file next to the socket, the next agent acts on it. */
export interface CniDeletion {
  containerId: string;
  ifname: string;
}

/** In the directory of the socket. */
export const DELETIONS_DIRECTORY = "deleted";

/** The name says it all, so that no note can be half written. The plugin accepts neither a container id nor an interface with a colon. */
export function deletionFile({ containerId, ifname }: CniDeletion): string {
  return `${containerId}:${ifname}`;
}

/** Undefined for a file that is no note. */
export function readDeletionFile(name: string): CniDeletion | undefined {
  const [containerId, ifname, ...more] = name.split(":");
  return containerId && ifname && more.length === 0 ? { containerId, ifname } : undefined;
}
