import type { GlobalNetworkPolicy, NetworkPolicy } from "../resources/network-policy.ts";
import { type Problem, reporters } from "./problem.ts";
import { ruleProblems } from "./rule.ts";
import { nameProblems, selectorProblems } from "./values.ts";

export const POLICY_PROBLEMS = {
  POLICY_NAME: {
    title: "A policy's name does not fit its tier",
    why: "A policy is stored as TIER.NAME; a name with other dots would be taken for one in another tier.",
    fix: "Use a name without dots, or TIER.NAME with the policy's own tier.",
    rule: "Policy names are NAME or TIER.NAME; names beginning with knp. belong to the orchestrator's policies.",
  },
  POLICY_NEEDS_FORWARD: {
    title: "preDNAT without applyOnForward",
    why: "Before routing it is unknown whether a packet will be forwarded, so the policy applies to all.",
    fix: "Set applyOnForward to true.",
    rule: "preDNAT needs applyOnForward.",
  },
  POLICY_PRE_DNAT_EGRESS: {
    title: "A preDNAT policy with egress",
    why: "It applies to packets on arrival; outgoing packets never pass it.",
    fix: "Remove the egress rules and type.",
    rule: "preDNAT: no egress.",
  },
} as const;

const at = reporters(POLICY_PROBLEMS);

export function networkPolicyProblems(policy: NetworkPolicy): Problem[] {
  const { name } = policy.metadata;
  // The orchestrator's own policies are shown under this prefix and may be read back.
  const orchestrators = name.startsWith("knp.default.");
  return [
    ...(orchestrators ? nameProblems(name, "metadata.name", { dots: true }) : policyNameProblems(policy)),
    ...specProblems(policy.spec, true),
  ];
}

export function globalNetworkPolicyProblems(policy: GlobalNetworkPolicy): Problem[] {
  const { spec } = policy;
  const egress =
    (spec.egress ?? []).length > 0 ? "spec.egress" : spec.types?.includes("Egress") ? "spec.types" : undefined;
  return [
    ...policyNameProblems(policy),
    ...(spec.preDNAT && !spec.applyOnForward
      ? [at.POLICY_NEEDS_FORWARD("spec.applyOnForward", "preDNAT needs applyOnForward.")]
      : []),
    ...(spec.preDNAT && egress ? [at.POLICY_PRE_DNAT_EGRESS(egress, "A preDNAT policy has no egress.")] : []),
    ...selectorProblems(spec.namespaceSelector, "spec.namespaceSelector"),
    ...specProblems(spec, false),
  ];
}

function policyNameProblems(policy: NetworkPolicy | GlobalNetworkPolicy): Problem[] {
  const { name } = policy.metadata;
  const malformed = nameProblems(name, "metadata.name", { dots: true });
  if (malformed.length > 0) return malformed;
  const [tier, ...rest] = name.split(".");
  if (rest.length > 1) return [at.POLICY_NAME("metadata.name", `"${name}" has more than one dot.`)];
  if (rest.length === 1 && policy.spec.tier !== undefined && policy.spec.tier !== tier) {
    return [at.POLICY_NAME("metadata.name", `"${name}" names tier ${tier}, but the policy is in ${policy.spec.tier}.`)];
  }
  return [];
}

function specProblems(spec: NetworkPolicy["spec"], namespaced: boolean): Problem[] {
  return [
    ...selectorProblems(spec.selector, "spec.selector"),
    ...selectorProblems(spec.serviceAccountSelector, "spec.serviceAccountSelector"),
    ...(["ingress", "egress"] as const).flatMap((direction) =>
      (spec[direction] ?? []).flatMap((rule, index) =>
        ruleProblems(rule, { path: `spec.${direction}[${index}]`, direction, namespaced }),
      ),
    ),
  ];
}
