import type { DataplaneModel, Direction, HostEndpoint, Packet } from "../model.ts";
import type { HookPolicy } from "./hook-policy.ts";
import { hostHook, workloadHook } from "./hook-policy.ts";
import { type AskedStep, allowed, hookVerdict, type Verdict } from "./hook-verdict.ts";

/** Where a packet comes from or goes to, as this node sees it. `interface` is one of the node's own, with the endpoint it has. */
export type Place =
  | { at: "workload"; id: string }
  | { at: "host" }
  | { at: "interface"; endpoint: HostEndpoint | undefined };

/** What was asked at each end, and where it was denied. */
export interface Trace {
  verdict: Verdict;
  /** Hits where it left its source and where it arrived; undefined: this node has no say there. */
  egress: string[] | undefined;
  ingress: string[] | undefined;
  /** Undefined: it is allowed. */
  denied: Asked | undefined;
}

/** Whose policy: of a workload, or of one of the node's own interfaces. */
interface Asked {
  end: Direction;
  of: "workload" | "host";
}

/**
 * What the node does to the first packet of a flow: plain semantics, one packet at a time, nothing remembered. Answers to allowed packets
 * are not asked again; that is the connection tracking's business.
 */
export function evaluate(model: DataplaneModel, packet: Packet, path: { from: Place; to: Place }): Verdict {
  return trace(model, packet, path).verdict;
}

/** A step, and at which end of the packet's way it was asked. */
export type AskedAt = AskedStep & { end: Direction };

/** The same, by the end it was asked at: for flow logs. `asked` gets each step. */
export function trace(
  model: DataplaneModel,
  packet: Packet,
  path: { from: Place; to: Place },
  asked?: (step: AskedAt) => void,
): Trace {
  const { from, to } = path;
  const result: Trace = {
    verdict: allowed("no policy applies"),
    egress: undefined,
    ingress: undefined,
    denied: undefined,
  };
  if (from.at === "workload" && to.at === "workload" && from.id === to.id)
    return { ...result, verdict: allowed("a pod always reaches itself") };
  const role = { fromHost: from.at === "host", toHost: to.at === "host" };
  const hits: string[] = [];
  for (const { hook, end, of } of hooksOf(model, path)) {
    const denied = { end, of };
    if (hook === "absent") {
      return { ...result, denied, verdict: { action: "deny", because: "the workload is not known here", hits } };
    }
    const verdict = hookVerdict(model, hook, packet, role, asked && ((step) => asked({ ...step, end })));
    hits.push(...verdict.hits);
    if (hook.host ?? hook.workload) result[end] = [...(result[end] ?? []), ...verdict.hits];
    result.verdict = { ...verdict, hits };
    if (verdict.action === "deny") return { ...result, denied };
  }
  if (from.at === "workload" && role.toHost && model.settings.endpointToHost === "drop") {
    const because = "pods may not reach their node (endpointToHost)";
    return { ...result, denied: { end: "egress", of: "workload" }, verdict: { action: "deny", because, hits } };
  }
  return { ...result, verdict: { ...result.verdict, hits } };
}

type Question = Asked & { hook: HookPolicy | "absent" };

function* hooksOf(model: DataplaneModel, { from, to }: { from: Place; to: Place }): Generator<Question> {
  if (from.at === "interface") yield { hook: hostHook(from.endpoint, "ingress"), end: "ingress", of: "host" };
  if (from.at === "workload") yield { hook: workloadHookOf(model, from.id, "egress"), end: "egress", of: "workload" };
  if (to.at === "interface") yield { hook: hostHook(to.endpoint, "egress"), end: "egress", of: "host" };
  // A node always reaches its own pods: the orchestrator asks them for their health.
  if (to.at === "workload" && from.at !== "host") {
    yield { hook: workloadHookOf(model, to.id, "ingress"), end: "ingress", of: "workload" };
  }
}

function workloadHookOf(model: DataplaneModel, id: string, direction: Direction): HookPolicy | "absent" {
  const endpoint = model.endpoints.get(id);
  return endpoint ? workloadHook(model, endpoint, direction) : "absent";
}
