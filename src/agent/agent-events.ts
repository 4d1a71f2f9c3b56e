import type { KubeObject } from "../api/object.ts";
import type { DataplaneAnnouncement } from "../api/protocol/agent-report.ts";
import { reasonOf } from "../api/protocol/status-reasons.ts";
import type { Events } from "../cluster/events.ts";

/** What happens to the node and its pods, as events of them. */
export interface AgentEvents {
  /** Another data plane acts. Nothing is said of a node that is new, or where the agent is. */
  dataplane(before: DataplaneAnnouncement | "unknown" | undefined, now: DataplaneAnnouncement): void;
  /** Something of a pod or of this node is not in effect, and stays so. `object` is its kind and name, as the table of problems has it. */
  problem(object: string, code: string, message: string): void;
  /** The CNI configuration of this node was deleted, and is there again. */
  cniRestored(file: string): void;
}

const MEANING: Record<DataplaneAnnouncement, string> = {
  BPF: "Policy and Services are carried by eBPF on this node",
  LeavingBPF: "The node leaves eBPF: other nodes send it no clients' addresses any more",
  DrainingBPF: "nftables takes new connections on this node; eBPF ends those that only it can carry",
  Nftables: "Policy is carried by nftables on this node, Services by kube-proxy",
};
const OF_POD = /^(?:pod|endpoint) ([^ /]+\/[^ ]+)$/;
/** Other objects concern every node alike, and are in the status: an event from each node would not help. */
const OF_NODE = /^(interface|route|hostEndpoint|node|file) /;

export function agentEvents(
  events: Events,
  objects: { node(): KubeObject | undefined; pod(key: string): KubeObject | undefined },
): AgentEvents {
  return {
    dataplane(before, now) {
      const node = objects.node();
      if (!node || before === undefined || before === now) return;
      events.changed(node, { type: "Normal", reason: "DataplaneChanged", message: MEANING[now] });
    },
    problem(object, code, message) {
      const pod = OF_POD.exec(object)?.[1];
      const about = pod !== undefined ? objects.pod(pod) : OF_NODE.test(object) ? objects.node() : undefined;
      if (!about) return;
      const saying = pod !== undefined ? message : `${object}: ${message}`;
      events.changed(about, { type: "Warning", reason: reasonOf(code), message: saying });
    },
    cniRestored(file) {
      const node = objects.node();
      const message = `The CNI configuration ${file} of this node was deleted, and is written again`;
      if (node) events.changed(node, { type: "Warning", reason: "CniConfigurationRestored", message });
    },
  };
}
