import { DERIVED_LABELS } from "../resources/derived-labels.ts";
import type { NetworkSet } from "../resources/network-set.ts";
import type { Profile } from "../resources/profile.ts";
import type { Problem } from "./problem.ts";
import { reporters } from "./problem.ts";
import { ruleProblems } from "./rule.ts";
import { labelKeyProblems, labelValueProblems, nameProblems, netProblems, VALUE_PROBLEMS } from "./values.ts";

const at = reporters(VALUE_PROBLEMS);

const DERIVED: readonly string[] = Object.values(DERIVED_LABELS);

/** Network sets of both scopes. */
export function networkSetProblems(set: NetworkSet): Problem[] {
  return [
    ...nameProblems(set.metadata.name, "metadata.name", { dots: true }),
    ...DERIVED.filter((key) => set.metadata.labels?.[key] !== undefined).map((key) =>
      at.LABEL_RESERVED("metadata.labels", `The label ${key} is set by the service itself.`),
    ),
    ...netProblems(set.spec.nets, "spec.nets", true),
  ];
}

export function profileProblems(profile: Profile): Problem[] {
  const { spec } = profile;
  return [
    ...nameProblems(profile.metadata.name, "metadata.name", { dots: true }),
    ...Object.entries(spec.labelsToApply ?? {}).flatMap(([key, value]) => [
      ...labelKeyProblems(key, "spec.labelsToApply"),
      ...labelValueProblems(value, `spec.labelsToApply.${key}`),
    ]),
    ...(spec.ingress ?? []).flatMap((rule, i) =>
      ruleProblems(rule, { path: `spec.ingress[${i}]`, direction: "ingress", namespaced: false }),
    ),
    ...(spec.egress ?? []).flatMap((rule, i) =>
      ruleProblems(rule, { path: `spec.egress[${i}]`, direction: "egress", namespaced: false }),
    ),
  ];
}
