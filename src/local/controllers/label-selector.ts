import type { LabelSelector, Labels, SelectorRequirement } from "./workload-types.ts";

/** An empty selector matches everything; no selector at all matches nothing, as Kubernetes has it. */
export function matchesSelector(selector: LabelSelector | undefined, labels: Labels = {}): boolean {
  if (!selector) return false;
  return (
    matchesLabels(selector.matchLabels ?? {}, labels) &&
    (selector.matchExpressions ?? []).every((requirement) => meets(requirement, labels[requirement.key]))
  );
}

export function matchesLabels(wanted: Labels, labels: Labels = {}): boolean {
  for (const key in wanted) if (labels[key] !== wanted[key]) return false;
  return true;
}

export function meets({ operator, values = [] }: SelectorRequirement, value: string | undefined): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
      return value !== undefined && Number(value) > Number(values[0]);
    case "Lt":
      return value !== undefined && Number(value) < Number(values[0]);
  }
}
