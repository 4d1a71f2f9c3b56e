import type { DataplaneModel, Direction, HostEndpoint, Packet } from "../model.ts";
import type { HookPolicy } from "./hook-policy.ts";
import { hostHook, workloadHook } from "./hook-policy.ts";
import { allowed, hookVerdict, type Verdict } from "./hook-verdict.ts";

/** Where a packet comes from or goes to, as this node sees it. `interface` is one of the node's own, with the endpoint it has. */
export type Place =
  | { at: "workload"; id: string }
  | { at: "host" }
  | { at: "interface"; endpoint: HostEndpoint | undefined };

/**
 * What the node does to the first packet of a flow: plain semantics, one packet at a time, nothing remembered. Answers to allowed packets
 * are not asked again; that is the connection tracking's business.
 */
export function evaluate(model: DataplaneModel, packet: Packet, path: { from: Place; to: Place }): Verdict {
  const { from, to } = path;
  if (from.at === "workload" && to.at === "workload" && from.id === to.id)
    return allowed("a pod always reaches itself");
  const role = { fromHost: from.at === "host", toHost: to.at === "host" };
  const hits: string[] = [];
  let last = allowed("no policy applies");
  for (const hook of hooksOf(model, path)) {
    if (hook === "absent") return { action: "deny", because: "the workload is not known here", hits };
    last = hookVerdict(model, hook, packet, role);
    hits.push(...last.hits);
    if (last.action === "deny") return { ...last, hits };
  }
  if (from.at === "workload" && role.toHost && model.settings.endpointToHost === "drop") {
    return { action: "deny", because: "pods may not reach their node (endpointToHost)", hits };
  }
  return { ...last, hits };
}

function* hooksOf(model: DataplaneModel, { from, to }: { from: Place; to: Place }): Generator<HookPolicy | "absent"> {
  if (from.at === "interface") yield hostHook(from.endpoint, "ingress");
  if (from.at === "workload") yield workloadHookOf(model, from.id, "egress");
  if (to.at === "interface") yield hostHook(to.endpoint, "egress");
  // A node always reaches its own pods: the orchestrator asks them for their health.
  if (to.at === "workload" && from.at !== "host") yield workloadHookOf(model, to.id, "ingress");
}

function workloadHookOf(model: DataplaneModel, id: string, direction: Direction): HookPolicy | "absent" {
  const endpoint = model.endpoints.get(id);
  return endpoint ? workloadHook(model, endpoint, direction) : "absent";
}
