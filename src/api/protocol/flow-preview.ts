import type { KubeObject } from "../object.ts";
import type { FlowEnd, PolicyHit } from "./flow.ts";

/**
 * What policies that are not there yet would have done to recorded flows: what a POST to `previews` of `flows.vendor.io/v1` takes and answers. Nothing of
 * it is stored. Both verdicts are calculated, by policy as it is and by policy with the change, so that they differ by the change alone.
 */
export interface FlowPreview {
  apiVersion: string;
  kind: typeof FLOW_PREVIEW_KIND;
  metadata: { name?: string; namespace?: string };
  spec: FlowPreviewSpec;
  status: FlowPreviewStatus;
}

export const FLOW_PREVIEW_KIND = "FlowPreview";

export interface FlowPreviewSpec {
  /** Which flows, in the grammar of queries. Default: all that the reader sees. */
  query?: string;
  /** RFC 3339, or milliseconds since 1970. Default: all of the history. */
  since?: string | number;
  until?: string | number;
  /** Whole objects, new or in place of what is there: policies of `vendor.io/v3` and of Kubernetes, tiers and network sets. */
  objects?: readonly KubeObject[];
  delete?: readonly DeletedObject[];
}

export interface DeletedObject {
  apiVersion: string;
  kind: string;
  namespace?: string;
  name: string;
}

export interface FlowPreviewStatus {
  /** Milliseconds since 1970: the time that flows are of. */
  since: number;
  until: number;
  /** Flows that were asked about. */
  flows: number;
  /** What they are by ends, port and protocol: each is asked once. */
  pairs: number;
  /** Pairs whose verdict stays. */
  same: number;
  /** Those that would be denied first, then those of most connections. */
  changed: readonly ChangedPair[];
  /** What could not be asked, by the reason. */
  unknown: readonly UnknownPairs[];
  /** What the answer lacks, and why: one sentence each. */
  notes: readonly string[];
}

interface PairCounts {
  flows: number;
  connections: number;
  /** In both directions. */
  packets: number;
  bytes: number;
}

export interface ChangedPair extends PairCounts {
  /** As the reader sees them in a list of flows. */
  from: FlowEnd;
  to: FlowEnd;
  /** 0: the protocol has none, or ports were merged. */
  port: number;
  protocol: string;
  /** By policy as it is, and not as it was when the flow was counted. */
  verdict: "Allow" | "Deny";
  then: "Allow" | "Deny";
  /** What decides at the end where the verdict changes. Absent: no policy does. Of a policy that the reader may not get: kind, tier and action. */
  decidedBy?: PolicyHit;
  thenBy?: PolicyHit;
  /** Of some of the flows, as in lists. */
  ids: readonly string[];
}

export interface UnknownPairs extends PairCounts {
  reason: string;
  pairs: number;
}
