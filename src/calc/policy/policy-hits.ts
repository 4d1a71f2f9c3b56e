import type { PolicyHit } from "../../api/protocol/flow.ts";
import type { DataplaneModel, Rule } from "../model.ts";

/** Stored names of policies by what their ids begin with (`Policy.id`). */
const KINDS: Readonly<Record<string, string>> = {
  gnp: "GlobalNetworkPolicy",
  np: "NetworkPolicy",
  knp: "KubernetesNetworkPolicy",
};
const ACTIONS = { allow: "Allow", deny: "Deny", pass: "Pass", log: "Log" } as const;
/** Where Kubernetes' own policies are. */
const KUBERNETES_TIER = "default";

/** What is hit. Of a model in which staged policies are in effect also their kinds, by `Policy.id`. */
export type HitPolicies = Pick<DataplaneModel, "policies" | "profiles"> & { staged?: ReadonlyMap<string, string> };

/**
 * The way through policy in words, from what was hit (`Verdict.hits`). What the policy is gone of is concluded: the last of a way decided, what came
 * before it did not.
 */
export function policyHits(
  model: HitPolicies,
  hits: readonly string[],
  direction: PolicyHit["direction"],
  decided: "Allow" | "Deny",
): PolicyHit[] {
  return hits.map((hit, index) => {
    const last = index === hits.length - 1;
    const concluded = last ? decided : "Pass";
    if (hit === ";no-profile")
      return { direction, kind: "NoProfile", tier: "", namespace: "", name: "", action: "Deny" };
    const [owner = "", side = "", position] = hit.split(";");
    if (side === "end" && position === undefined) {
      return { direction, kind: "EndOfTier", tier: owner, namespace: "", name: "", action: concluded };
    }
    const named = { direction, ...ownerOf(owner), rule: Number(position) || 0 };
    const policy = model.policies.get(owner) ?? model.profiles.get(owner);
    const rule = policy && ruleOf(policy, hit);
    const tier = model.policies.get(owner)?.tier ?? named.tier;
    const kind = model.staged?.get(owner);
    const staged = kind === undefined ? {} : { kind, staged: true };
    return { ...named, ...staged, tier, action: rule ? ACTIONS[rule.action] : concluded };
  });
}

function ruleOf({ ingress, egress }: { ingress: Rule[]; egress: Rule[] }, id: string): Rule | undefined {
  return ingress.find((rule) => rule.id === id) ?? egress.find((rule) => rule.id === id);
}

function ownerOf(owner: string): Pick<PolicyHit, "kind" | "tier" | "namespace" | "name"> {
  const [prefix = "", first = "", second] = owner.split("/");
  const kind = KINDS[prefix];
  if (kind === undefined || first === "") return { kind: "Profile", tier: "", namespace: "", name: owner };
  const [namespace, name] = second === undefined ? ["", first] : [first, second];
  const tier = prefix === "knp" ? KUBERNETES_TIER : (/^([^.]+)\./.exec(name)?.[1] ?? KUBERNETES_TIER);
  return { kind, tier, namespace, name };
}
