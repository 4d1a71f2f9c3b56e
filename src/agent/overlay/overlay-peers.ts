import type { Condition, KubeObject } from "../../api/object.ts";
import { type AgentReport, readAgentReport } from "../../api/protocol/agent-report.ts";
import type { DataplaneModel } from "../../calc/model.ts";

/** Another node with an end of the overlay. */
export interface OverlayPeer {
  node: string;
  /** Of its end of the overlay. */
  mac: string;
  /** Where the overlay's packets are sent to. */
  address: string;
  /** Packets go to it through the overlay. Its own may come through it in any case. */
  used: boolean;
  /** Its agent is ready and answers probes, as far as the cluster knows. Of others, that no answer comes means nothing. */
  answers: boolean;
}

export interface PeerSources {
  model: Pick<DataplaneModel, "nodes" | "routes" | "settings">;
  node(name: string): KubeObject | undefined;
  /** Of the namespace agents are in: tenants write no annotations there. */
  agentPods: readonly KubeObject[];
}

/** `underlay`: the own address that the overlay sends from; the others are of its family. */
export function overlayPeers({ model, node, agentPods }: PeerSources, underlay: string): OverlayPeer[] {
  const uses = nodesThroughOverlay(model);
  const answering = new Set(agentPods.flatMap((pod) => answeringNode(pod) ?? []));
  return [...model.nodes.values()]
    .filter(({ local }) => !local)
    .flatMap(({ name, addressV4, addressV6, vtep }) => {
      const address = underlay.includes(":") ? addressV6 : addressV4;
      if (!address || !vtep.mac) return [];
      const used = uses === "all" || uses.has(name);
      return [{ node: name, mac: vtep.mac, address, used, answers: answering.has(name) && isUp(node(name)) }];
    })
    .sort((a, b) => (a.node < b.node ? -1 : 1));
}

/** eBPF forwards to every node, whatever pools say. */
function nodesThroughOverlay({ routes, settings }: PeerSources["model"]): "all" | Set<string | null> {
  if (settings.dataplane === "BPF") return "all";
  const encapsulated = [...routes.values()].filter(
    ({ kind, encapsulation }) => kind === "remote-workload" && encapsulation === "vxlan",
  );
  return new Set(encapsulated.map((route) => route.node));
}

function answeringNode(pod: KubeObject): string | undefined {
  const report: Pick<AgentReport, "overlay"> = readAgentReport(pod.metadata.annotations);
  if (report.overlay === undefined || pod.metadata.deletionTimestamp) return undefined;
  if (conditionOf(pod, "Ready") !== "True") return undefined;
  return (pod["spec"] as { nodeName?: string } | undefined)?.nodeName;
}

function isUp(node: KubeObject | undefined): boolean {
  return node !== undefined && !node.metadata.deletionTimestamp && (conditionOf(node, "Ready") ?? "True") === "True";
}

function conditionOf(object: KubeObject, type: string): Condition["status"] | undefined {
  const { conditions = [] } = (object["status"] ?? {}) as { conditions?: Condition[] };
  return conditions.find((one) => one.type === type)?.status;
}
