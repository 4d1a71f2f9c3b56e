import { defineErrors } from "../kit/errors.ts";

/** sysexits: a usage error / a temporary failure / a configuration error. */
const USAGE = 64;
const TRY_LATER = 75;
const CONFIG = 78;

export const errors = defineErrors({
  AGENT_ENV: {
    args: ["name", "value", "expected"],
    say: (name: string, value: string, wanted: string) => `$${name} is "${value}", which is not ${wanted}`,
    fix: (name: string, _value: string, wanted: string) => `set $${name} to ${wanted}, or omit it`,
    exitCode: CONFIG,
  },
  AGENT_ENV_MISSING: {
    args: ["name", "what"],
    say: (name: string, what: string) => `$${name} is not set: it is ${what}`,
    fix: (name: string) => `set $${name} in the container's environment`,
    exitCode: CONFIG,
  },
  AGENT_MAP_FULL: {
    args: ["map", "entries", "most"],
    say: (map: string, entries: number, most: number) => `BPF map ${map} has ${entries} of at most ${most} entries`,
    fix: () =>
      "run fewer Services, backends or connections on this node; vendor node show problems lists the full maps",
  },
  WORKLOAD_CONNTRACK_LIMIT: {
    args: ["pod", "table", "entries", "limit"],
    say: (pod: string, table: string, entries: number, limit: number) =>
      `pod ${pod} has ${entries} of at most ${limit} entries in ${table} of this node: new connections that it opens are dropped`,
    fix: () =>
      "find out why the pod opens so many connections; if they are legitimate, let it reuse connections, spread it over more nodes, or raise spec.workloadConntrackPercent of the DataplaneConfiguration",
  },
  OVERLAY_UNREACHABLE: {
    args: ["from", "to", "path", "evidence"],
    say: (from: string, to: string, path: string, evidence: string) =>
      `the overlay loses packets from node ${from} to node ${to} (${path}): ${evidence}`,
    fix: (from: string, to: string, path: string) =>
      `allow ${path} in firewalls and security groups between node ${from} and node ${to}`,
  },
  OVERLAY_MTU: {
    args: ["from", "to", "path", "bytes", "MTU"],
    say: (from: string, to: string, path: string, bytes: number, mtu: number) =>
      `the overlay loses packets of ${bytes} bytes from node ${from} to node ${to} (${path}), smaller ones arrive: the network carries less than ${mtu} bytes`,
    fix: (_from: string, _to: string, _path: string, bytes: number, mtu: number) =>
      `raise the MTU of the network between the nodes to ${mtu}, or set spec.vendorNetwork.mtu of the Installation to less than ${bytes}; pods that are created then have it`,
  },
  AGENT_NOT_APPLIED: {
    args: ["why"],
    say: (why: string) => `the desired state cannot be applied on this node: ${why}`,
    fix: () => "the agent retries; see its log, and what else changes the network of this node",
  },
  AGENT_SWITCH_FAILED: {
    args: ["why"],
    say: (why: string) => `the data plane of this node cannot be changed, the old one stays: ${why}`,
    fix: () => "the agent retries; vendor node show switchover has the step, the log of the agent the details",
  },
  AGENT_TASK_FAILED: {
    args: ["task", "why"],
    say: (task: string, why: string) => `the task "${task}" of this node's agent fails: ${why}`,
    fix: () => "the agent retries; see its log",
  },
  AGENT_NOT_READY: {
    args: ["why"],
    say: (why: string) => `the node's agent is not ready: ${why}`,
    fix: () =>
      "the container runtime retries; see the log of the agent's pod: kubectl -n vendor-system logs ds/vendor-node",
    exitCode: TRY_LATER,
  },
  AGENT_NOT_RUNNING: {
    args: ["socket", "why"],
    say: (socket: string, why: string) => `the agent does not answer at ${socket}: ${why}`,
    fix: () => "kubectl -n vendor-system get pods -o wide",
    exitCode: TRY_LATER,
  },
  AGENT_RUNS: {
    args: ["socket"],
    say: (socket: string) => `the agent of this node is running: it answers at ${socket}`,
    fix: () => "delete its DaemonSet first; the agent would restore what is removed",
    exitCode: CONFIG,
  },
  NODE_NOT_CLEAN: {
    args: ["left"],
    say: (left: readonly string[]) => `still on this node: ${left.join(", ")}`,
    fix: () => "vendor node remove --yes again, or reboot the node",
  },
  AGENT_NO_TABLE: {
    args: ["name", "known"],
    say: (name: string, _known: readonly string[]) => `there is no table "${name}"`,
    fix: (_name: string, known: readonly string[]) => `show one of: ${known.join(", ")}`,
    exitCode: USAGE,
  },
  AGENT_NO_ADDRESS: {
    args: ["family", "method"],
    say: (family: string, method: string) => `the node has no ${family} address that "${method}" finds`,
    fix: () => "set nodeAddressAutodetectionV4 or nodeAddressAutodetectionV6 of the Installation to what finds one",
    exitCode: CONFIG,
  },
  POD_UNNAMED: {
    say: () => "CNI_ARGS name no pod: there is no K8S_POD_NAMESPACE or no K8S_POD_NAME",
    fix: () => "call the plugin as a container runtime of Kubernetes does",
  },
  POD_UNKNOWN: {
    args: ["pod"],
    say: (pod: string) => `there is no pod ${pod} to connect`,
    fix: () => "none needed: the container runtime removes the rest of the pod",
  },
  POD_POLICY_LATE: {
    args: ["pod", "why"],
    say: (pod: string, why: string) => `policy of pod ${pod} was not in effect in time: ${why}`,
    fix: () => "see `vendor node show endpoints` on the pod's node; the container runtime retries",
    exitCode: TRY_LATER,
  },
  POD_INTERFACE_WRONG: {
    args: ["pod", "what"],
    say: (pod: string, what: string) => `the interface of pod ${pod} is not as it was made: ${what}`,
    fix: () => "delete the pod; its replacement gets a new interface",
  },
  POD_ANNOTATION: {
    args: ["pod", "annotation", "value"],
    say: (pod: string, annotation: string, value: string) => `pod ${pod} asks for ${annotation} "${value}"`,
    fix: (_pod: string, annotation: string) =>
      `write ${annotation} as a JSON list, of pools that exist and may be used`,
  },
  IPAM_NO_POOL: {
    args: ["pod"],
    say: (pod: string) => `no pool may give pod ${pod} an address`,
    fix: () => "add an IPPool, or see nodeSelector, namespaceSelector, allowedUses and disabled of those there are",
  },
  IPAM_EXHAUSTED: {
    args: ["pools", "why"],
    say: (pools: readonly string[], why: string) => `no address is free in ${pools.join(", ")}: ${why}`,
    fix: () => "add an IPPool, or free addresses; IPAMConfiguration limits how many blocks a node may have",
  },
  IPAM_ADDRESS_TAKEN: {
    args: ["address", "by"],
    say: (address: string, by: string) => `address ${address} is taken by ${by}`,
    fix: () => "request another address, or delete what has this one",
  },
  IPAM_ADDRESS_CONFLICT: {
    args: ["address", "pod", "other"],
    say: (address: string, pod: string, other: string) =>
      `pod ${pod} has address ${address}, which is allocated to ${other}`,
    fix: () => "delete one of the two pods; its replacement gets another address",
  },
  IPAM_BUSY: {
    args: ["what"],
    say: (what: string) => `${what} was changed concurrently at every attempt`,
    fix: () => "none needed: the container runtime retries",
    exitCode: TRY_LATER,
  },
  NODE_SETUP_FAILED: {
    args: ["what", "why"],
    say: (what: string, why: string) => `the node could not be prepared: ${what}: ${why}`,
    fix: () => "run the container privileged, with the node's directories mounted as the manifests have it",
    exitCode: CONFIG,
  },
  PROBE_CANNOT_LISTEN: {
    args: ["port", "why"],
    say: (port: string, why: string) => `the probe cannot listen on ${port}: ${why}`,
    fix: () => "choose a port that is free",
  },
});
