import type { FlowCounts, FlowEnd, FlowKey, PolicyHit } from "../api/protocol/flow.ts";

export function workload(namespace: string, name: string, labels: Record<string, string> = { app: name }): FlowEnd {
  return { type: "Workload", namespace, name, kind: "Deployment", labels };
}

export const outside: FlowEnd = { type: "Outside", namespace: "", name: "public" };

export function policyHit(some: Partial<PolicyHit> = {}): PolicyHit {
  return {
    direction: "Ingress",
    kind: "NetworkPolicy",
    tier: "default",
    namespace: "pay",
    name: "lock",
    rule: 2,
    action: "Deny",
    ...some,
  };
}

/** A denied request of shop/web to pay/db. */
export function flowKey(some: Partial<FlowKey> = {}): FlowKey {
  return {
    from: workload("shop", "web"),
    to: workload("pay", "db"),
    service: { namespace: "pay", name: "database", port: "sql" },
    port: 5432,
    protocol: "TCP",
    verdict: "Deny",
    reason: "policy_ingress",
    policies: [policyHit()],
    reporter: "Destination",
    node: "node-1",
    dataplane: "BPF",
    ...some,
  };
}

export const NOTHING: FlowCounts = {
  packets: 0,
  bytes: 0,
  replyPackets: 0,
  replyBytes: 0,
  started: 0,
  ended: 0,
  live: 0,
};

/** Numbers that look random and are the same for the same seed. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
