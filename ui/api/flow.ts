import type { FlowCounts, FlowKey } from "../../src/api/protocol/flow.ts";

/** Shapes of `flows.vendor.io/v1` as they arrive; test/ui/shapes.test.ts holds them to what vendor-flow-logs serves. */

export interface Flow extends FlowKey, FlowCounts {
  metadata: { name: string; namespace?: string; resourceVersion?: string };
  sourceAddresses: readonly string[];
  destinationAddresses: readonly string[];
  moreAddresses?: boolean;
  lastSeen: string;
}

/** What an answer rests on. */
export interface FlowCoverage {
  historyFrom: number;
  shed: { ports: boolean; addresses: boolean; names: boolean; merged?: number; unattributed?: number };
  nodes: { silent: readonly string[]; late: readonly string[]; skewed: readonly string[]; unnamed?: number };
}

export interface FlowListMetadata extends FlowCoverage {
  resourceVersion: string;
  continue?: string;
  totals: { flows: number };
}

export interface FlowList {
  metadata: FlowListMetadata;
  items: Flow[];
}

export interface FlowEventLine {
  type: "ADDED" | "MODIFIED" | "BOOKMARK" | "ERROR";
  object: Flow | { metadata: { resourceVersion: string } } | ApiStatus;
}

/** What the Kubernetes API answers when it refuses. */
export interface ApiStatus {
  kind: "Status";
  code?: number;
  reason?: string;
  message?: string;
  details?: { name?: string; kind?: string; causes?: readonly { field?: string; message?: string }[] };
}

export interface FlowTally {
  flows: number;
  connections: number;
  packets: number;
  bytes: number;
}

export interface FlowTimeline {
  points: readonly {
    since: number;
    until: number;
    allowed: Omit<FlowTally, "flows">;
    denied: Omit<FlowTally, "flows">;
  }[];
}

export interface RuleStatistics {
  kind: string;
  tier: string;
  namespace: string;
  name: string;
  staged?: boolean;
  direction?: "Egress" | "Ingress";
  rule?: number;
  allowed: FlowTally;
  denied: FlowTally;
  passed: FlowTally;
  /** Absent: never, as far as the history goes. */
  lastHit?: number;
}

export interface FlowHints {
  hints: readonly { value: string }[];
}
