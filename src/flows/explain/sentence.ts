import type { FlowKey, PolicyHit } from "../../api/protocol/flow.ts";
import type { ExplainedEnd, ExplainedStep } from "../../api/protocol/flow-explanation.ts";
import { hitText } from "../table.ts";
import { DROP_REASONS, isPolicyReason } from "./drop-reasons.ts";
import { pairText } from "./flow-words.ts";
import { policyText, ruleText } from "./policy-references.ts";

export interface Findings {
  key: FlowKey;
  /** What decided last when the flow was counted, as the reader may see it. */
  recorded: PolicyHit | undefined;
  /** Undefined: it cannot be known. */
  now: "Allow" | "Deny" | undefined;
  changed: boolean;
  ends: readonly ExplainedEnd[];
  /** Of what no step decided. */
  because: string | undefined;
}

/** Everything in one sentence; in two where the policies have changed. */
export function sentence(findings: Findings): string {
  const { key, now, changed } = findings;
  if (key.verdict === "Deny" && !isPolicyReason(key.reason)) return dropText(key);
  if (now === undefined) return recordedText(findings);
  if (now !== key.verdict) {
    const was = key.verdict === "Deny" ? "Denied" : "Allowed";
    return `${was} when it was counted. The policies have changed since: ${lowerFirst(verdictText(findings, now))}`;
  }
  return `${verdictText(findings, now)}${changed ? " When it was counted something else decided so." : ""}`;
}

/** "If staged policies were enforced, it would be denied by StagedNetworkPolicy pay/default.lock#ingress[0]." */
export function pendingSentence(verdict: "Allow" | "Deny", hits: readonly PolicyHit[]): string {
  const decided = hits.findLast(({ action }) => action === verdict);
  const by = decided && `${decided.staged && decided.name !== "" ? `${decided.kind} ` : ""}${hitText(decided)}`;
  return `If staged policies were enforced, it would be ${verdict === "Deny" ? "denied" : "allowed"}${by ? ` by ${by}` : ""}.`;
}

function dropText(key: FlowKey): string {
  const { what, fix } = DROP_REASONS[key.reason ?? ""] ?? {
    what: `the data plane gave the reason ${key.reason}`,
    fix: "look at the node with vendorctl node NAME",
  };
  return `Dropped: ${what} (${pairText(key)}). What to do: ${fix}.`;
}

function recordedText({ key, recorded }: Findings): string {
  const verdict = key.verdict === "Deny" ? "Denied" : "Allowed";
  const by =
    recorded === undefined
      ? ""
      : recorded.kind === "EndOfTier"
        ? ` by the end of tier ${recorded.tier}`
        : recorded.kind === "NoProfile"
          ? ": no policy and no profile allowed it"
          : ` by ${policyText(recorded)}`;
  return `${verdict} when it was counted${by}: ${pairText(key)}.`;
}

function verdictText({ key, ends, because }: Findings, now: "Allow" | "Deny"): string {
  const counted = ends.filter(({ verdict }) => verdict === now);
  const pair = pairText(key);
  if (now === "Deny") {
    const step = counted[0]?.steps.at(-1);
    return step ? deniedText(step, counted[0]!, pair) : `Denied: ${because ?? "no policy was asked"} (${pair}).`;
  }
  const deciders = counted.flatMap((end) => {
    const step = end.steps.at(-1);
    return step ? [`${allowedBy(step)} (${end.direction.toLowerCase()})`] : [];
  });
  return deciders.length === 0
    ? `Allowed: no policy is asked of ${pair}.`
    : `Allowed by ${deciders.join(" and ")}: ${pair}.`;
}

function deniedText({ by, tier, rule }: ExplainedStep, { direction }: ExplainedEnd, pair: string): string {
  const end = direction === "Egress" ? " (egress)" : "";
  if (rule) return `Denied by ${ruleText(rule)}: ${pair}.`;
  if (by === "NoProfile") return `Denied: no policy and no profile allows ${pair}${end}.`;
  return `Denied: no policy in tier ${tier} allows ${pair}${end}.`;
}

function allowedBy({ tier, rule }: ExplainedStep): string {
  if (!rule) return tier === "" ? "default" : `the end of tier ${tier}`;
  return rule.kind === "Profile" && rule.name.startsWith("kns.") ? "default, as no policy applies" : ruleText(rule);
}

function lowerFirst(text: string): string {
  return `now it is ${text[0]!.toLowerCase()}${text.slice(1)}`;
}
