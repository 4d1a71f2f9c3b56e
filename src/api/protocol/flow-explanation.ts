import type { PolicyHit } from "./flow.ts";

/**
 * Why a flow was allowed or denied: what `flows/ID/explain` of `flows.vendor.io/v1` answers. The calculation that agents run is run again on the
 * objects as they are, so it says what policy does now, and whether that is still what was recorded. Of policies that the reader may not get there are
 * kind, tier and action alone, and nothing of the labels and addresses of ends whose flows the reader may not list.
 */
export interface FlowExplanation {
  apiVersion: string;
  kind: typeof FLOW_EXPLANATION_KIND;
  /** Of the flow. */
  metadata: { name: string; namespace: string };
  /** All of it in one sentence, for people: "Denied: no policy in tier default allows shop/web to pay/db on TCP port 5432." */
  sentence: string;
  recorded: RecordedVerdict;
  /** At the ends that the flow was counted at, so that it can be compared with `recorded`. Absent: it cannot be known, and `notes` say why. */
  now?: CalculatedVerdict;
  /** What staged policies would have done, as it was counted. Absent: none is for the ends. */
  pending?: PendingVerdict;
  /** The verdict is now another one, or has another cause. */
  changed: boolean;
  /** What was asked: absent where there is no address to ask about. */
  packet?: ExplainedPacket;
  /** Egress first; an end without policy, such as an address outside, is left out. */
  ends: readonly ExplainedEnd[];
  /** Rules of what decided that would have decided otherwise but for few of their criteria, those with one first. Only of a denial. At most MOST_NEAR_MISSES. */
  nearMisses: readonly NearMiss[];
  /** What would allow it. Only of a denial. */
  remedies: readonly Remedy[];
  /** What the answer lacks, and why: one sentence each. */
  notes: readonly string[];
}

export const FLOW_EXPLANATION_KIND = "FlowExplanation";
export const MOST_NEAR_MISSES = 20;

export interface RecordedVerdict {
  verdict: "Allow" | "Deny";
  /** Of a denied flow: why the data plane dropped it, as in the flow. */
  reason?: string;
}

export interface CalculatedVerdict {
  verdict: "Allow" | "Deny";
  /** In the order policy is asked, as in a flow. */
  policies: readonly PolicyHit[];
}

export interface PendingVerdict extends CalculatedVerdict {
  /** One sentence for people: "If staged policies were enforced, it would be denied by StagedNetworkPolicy pay/default.lock#ingress[0]." */
  text: string;
}

export interface ExplainedPacket {
  /** As a flow has it: TCP, UDP, … */
  protocol: string;
  /** 0: the protocol has none. */
  port: number;
  /** Absent: the reader may not see it. */
  source?: string;
  destination?: string;
}

/** One end of the flow, with the policy that is asked there. */
export interface ExplainedEnd {
  direction: PolicyHit["direction"];
  /** `NAMESPACE/POD`, one of the workload's that is there now. Absent: the reader may not see it, or there is none. */
  pod?: string;
  node?: string;
  /** Absent: it cannot be known, and `unknown` says why. */
  verdict?: "Allow" | "Deny";
  /** "shop/web has no pods any more" */
  unknown?: string;
  /** Tier by tier, the profiles last. */
  steps: readonly ExplainedStep[];
  /** The rule that decided. Absent: no rule did, or the reader may not see it. */
  decider?: RuleReference;
}

/** One tier, or the profiles. */
export interface ExplainedStep {
  /** Whose policy: the pod's, or that of a host endpoint of its node. */
  of: "Workload" | "HostEndpoint";
  /** Empty: the profiles. */
  tier: string;
  /** Those of the tier that select the endpoint, in order. */
  policies: readonly PolicyReference[];
  /** More policies than these select the endpoint: the reader may not get them. */
  hidden: boolean;
  /** Pass: it goes on with the next tier. */
  result: "Allow" | "Deny" | "Pass";
  by: "Rule" | "EndOfTier" | "NoProfile";
  /** Of `by: Rule`. Where the reader may not get the policy it has kind, tier and action alone. */
  rule?: RuleReference;
  /** One line for people. */
  text: string;
}

/** What a reader may not get has no namespace and no name. */
export type PolicyReference = Pick<PolicyHit, "kind" | "tier" | "namespace" | "name">;

export interface RuleReference extends PolicyReference {
  direction: PolicyHit["direction"];
  action: PolicyHit["action"];
  /** Position in the list of the object, from 0. Of a policy of Kubernetes: in its own list, whose rules may become several. */
  rule?: number;
  /** Where it is in the object: `spec.ingress[2]`. */
  path?: string;
  /** Its first line in the object as `kubectl get -o yaml` prints it, from 1. */
  line?: number;
  /** These lines. */
  yaml?: string;
}

/** A rule that does not match. */
export interface NearMiss {
  rule: RuleReference;
  /** Each must hold for the rule to match. */
  criteria: readonly FailedCriterion[];
  /** One line for people: "pay/db#ingress[2] allows TCP port 8080; this is 5432". */
  text: string;
}

export interface FailedCriterion {
  /** As in the model of policy: `dstPorts`, `protocol`, `srcSets`, … Numbers and names of ports are one criterion. */
  name: string;
  /** For people: "8080". */
  wanted: string;
  /** "5432" */
  found: string;
}

/** One way to allow it. */
export interface Remedy {
  /** ChangeRule: of `rule`. AddRule: `yaml` is a rule, for a policy in `namespace` that selects the workload; AddPolicy: `yaml` is a policy. */
  kind: "ChangeRule" | "AddRule" | "AddPolicy";
  direction: PolicyHit["direction"];
  /** One sentence in the imperative. */
  text: string;
  rule?: RuleReference;
  yaml?: string;
}
