import type { KubeObject } from "../object.ts";

/**
 * Policies that would allow the flows that were asked for: what `proposals` of `flows.vendor.io/v1` answers. They are made of what the reader may see,
 * and nothing is written to the cluster.
 */
export interface FlowProposal {
  apiVersion: string;
  kind: typeof FLOW_PROPOSAL_KIND;
  /** The time whose flows were read, in milliseconds since 1970. */
  since: number;
  until: number;
  /** By namespace and name. */
  policies: readonly ProposedPolicy[];
  /** Flows that no rule was made for, those of most connections first. */
  left: readonly LeftFlows[];
  /** What to know before applying them: one sentence each. */
  notes: readonly string[];
}

export const FLOW_PROPOSAL_KIND = "FlowProposal";
export const PROPOSAL_KINDS = ["kubernetes", "vendor"] as const;
export type ProposalKind = (typeof PROPOSAL_KINDS)[number];

export interface ProposedPolicy {
  /** As it is applied. */
  object: KubeObject;
  rules: readonly ProposedRule[];
}

/** What one rule rests on. */
export interface ProposedRule extends FlowTally {
  /** Where it is in the object: `spec.ingress[0]`. */
  path: string;
  /** One line for people: "shop/web on TCP 5432". */
  text: string;
  /** When the first and the last of them were counted, in milliseconds since 1970. */
  since: number;
  until: number;
}

export interface FlowTally {
  flows: number;
  /** Of denied flows 0: none began. */
  connections: number;
  packets: number;
  bytes: number;
}

export interface LeftFlows {
  /** "a public address to shop/web on TCP port 443" */
  what: string;
  why: string;
  flows: number;
  connections: number;
}
