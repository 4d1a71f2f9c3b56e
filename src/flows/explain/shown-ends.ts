import type { FlowKey, PolicyHit } from "../../api/protocol/flow.ts";
import type {
  ExplainedEnd,
  ExplainedStep,
  PolicyReference,
  RuleReference,
} from "../../api/protocol/flow-explanation.ts";
import type { ExplainedStep as AskedStep } from "../../calc/policy/explain.ts";
import type { AskedEnd } from "./ask-nodes.ts";
import type { PolicyAccess } from "./policy-access.ts";
import { type PolicyReferences, ruleText } from "./policy-references.ts";

/** So many policies of one tier are named. */
const MOST_POLICIES = 20;

export interface ShowingParts {
  references: PolicyReferences;
  access: PolicyAccess;
  /** Whether the reader may see flows of a namespace. */
  sees(namespace: string): boolean;
}

/** Steps of an end as the reader may see them. */
export async function shownEnd(asked: AskedEnd, key: FlowKey, parts: ShowingParts): Promise<ExplainedEnd> {
  const { direction, place, verdict } = asked;
  const steps: ExplainedStep[] = [];
  for (const step of asked.steps) steps.push(await shownStep(step, direction, parts));
  const end = direction === "Egress" ? key.from : key.to;
  const decider = steps.at(-1)?.rule;
  return {
    direction,
    ...(parts.sees(end.namespace) && place.pod !== undefined ? { pod: place.pod } : {}),
    ...(parts.sees(end.namespace) && place.node !== undefined ? { node: place.node } : {}),
    ...{ verdict, steps },
    ...(decider && decider.name !== "" ? { decider } : {}),
  };
}

async function shownStep(
  step: AskedStep,
  direction: PolicyHit["direction"],
  { references, access }: ShowingParts,
): Promise<ExplainedStep> {
  const policies: PolicyReference[] = [];
  let hidden = false;
  for (const owner of step.tier === undefined ? [] : step.owners) {
    const policy = references.policy(owner);
    if (policies.length < MOST_POLICIES && (await access.mayRead(policy))) policies.push(policy);
    else hidden = true;
  }
  const rule = step.rule === undefined ? undefined : await shownRule(step.rule, step.result, { references, access });
  const result = ({ allow: "Allow", deny: "Deny", pass: "Pass" } as const)[step.result];
  const shown = {
    of: step.of === "host" ? ("HostEndpoint" as const) : ("Workload" as const),
    ...{ tier: step.tier ?? "", policies, hidden, result },
    by: rule ? ("Rule" as const) : step.tier === undefined ? ("NoProfile" as const) : ("EndOfTier" as const),
    ...(rule ? { rule: { ...rule, direction } } : {}),
  };
  return { ...shown, text: stepText(shown) };
}

async function shownRule(
  id: string,
  action: AskedStep["result"],
  { references, access }: Pick<ShowingParts, "references" | "access">,
): Promise<RuleReference> {
  const [owner = ""] = id.split(";");
  return references.rule(id, action, await access.mayRead(references.policy(owner)));
}

const DOES = { Allow: "allows it", Deny: "denies it", Pass: "passes it on" } as const;

function stepText({ tier, result, by, rule, of }: Omit<ExplainedStep, "text">): string {
  const where =
    tier === "" ? (of === "Workload" ? "no policy decides" : "profiles of the host endpoint") : `tier ${tier}`;
  if (by === "NoProfile") return `${where}: no profile allows it`;
  if (rule) return `${where}: ${ruleText(rule)} ${DOES[result]}`;
  return `${where}: no rule matches, and its end ${DOES[result]}`;
}

/** As a hit of a flow; of a policy that the reader may not get the names are left out. */
export async function shownHit(hit: PolicyHit, access: Pick<PolicyAccess, "mayRead">): Promise<PolicyHit> {
  if (hit.name === "" || (await access.mayRead(hit))) return hit;
  const { direction, kind, tier, action, staged } = hit;
  return { direction, kind, tier, namespace: "", name: "", action, ...(staged && { staged }) };
}
