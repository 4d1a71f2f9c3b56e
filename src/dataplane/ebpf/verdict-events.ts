import { eventLayout, HOOK, REASON } from "../../gen/bpf/layout.gen.ts";
import { addressText } from "./net-bytes.ts";
import { nameOf } from "./show.ts";

/** What a policy said about a flow, or why a packet was dropped before any was asked. */
export interface VerdictEvent {
  /** Nanoseconds since boot. */
  time: bigint;
  hook: string;
  reason: string;
  ifindex: number;
  protocol: number;
  source: { address: string; port: number };
  destination: { address: string; port: number };
  /** Rules, ends of tiers and of profiles that were hit, in order; as far as they are still known. */
  hits: string[];
}

export function readVerdict(record: Buffer, ruleOf: (hit: bigint) => string | undefined): VerdictEvent {
  const { time, hook, reason, ifindex, tuple: flow, rulesHit, rules } = eventLayout.read(record);
  return {
    ...{ time, ifindex, protocol: flow.protocol },
    hook: nameOf(HOOK, hook, "HOOK_"),
    reason: nameOf(REASON, reason, ""),
    source: { address: addressText(flow.src), port: flow.sport },
    destination: { address: addressText(flow.dst), port: flow.dport },
    hits: rules.slice(0, rulesHit).map((hit) => ruleOf(hit) ?? "unknown"),
  };
}
