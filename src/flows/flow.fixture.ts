import type { FlowBatch, FlowCounts, FlowEnd, FlowKey, FlowRow, PolicyHit } from "../api/protocol/flow.ts";

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

export function flowRow(key: Partial<FlowKey> = {}, some: Partial<FlowRow> = {}): FlowRow {
  return {
    ...NOTHING,
    packets: 3,
    bytes: 180,
    started: 3,
    key: flowKey(key),
    sourceAddresses: ["10.244.1.7"],
    destinationAddresses: ["10.244.2.9"],
    more: false,
    ...some,
  };
}

export function flowBatch(rows: readonly FlowRow[], some: Partial<FlowBatch> = {}): FlowBatch {
  return { node: "node-1", boot: "boot-1", interval: 1, since: 0, until: 0, merged: 0, unattributed: 0, ...some, rows };
}

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
