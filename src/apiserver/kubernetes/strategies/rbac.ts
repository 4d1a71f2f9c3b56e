import { isDeepStrictEqual } from "node:util";
import type { StatusCause } from "../../../api/status.ts";
import type { Strategy } from "../../resource.ts";
import { causes, forbidden, invalid, required, unsupported } from "./rules.ts";

const GROUP = "rbac.authorization.k8s.io";

interface Subject {
  kind?: string;
  name?: string;
  namespace?: string;
  apiGroup?: string;
}

interface RoleRef {
  apiGroup?: string;
  kind?: string;
  name?: string;
}

interface PolicyRule {
  verbs?: string[];
  apiGroups?: string[];
  resources?: string[];
  nonResourceURLs?: string[];
}

function ruleProblems(rule: PolicyRule, path: string, clusterWide: boolean): StatusCause[] {
  const none = (list: readonly string[] | undefined) => (list ?? []).length === 0;
  const verbs = none(rule.verbs) && required(`${path}.verbs`, "verbs must contain at least one value");
  if (!none(rule.nonResourceURLs)) {
    const mixed = !none(rule.apiGroups) || !none(rule.resources);
    const urls = `${path}.nonResourceURLs`;
    return causes(
      verbs,
      !clusterWide && invalid(urls, rule.nonResourceURLs, "namespaced rules cannot apply to non-resource URLs"),
      mixed &&
        invalid(urls, rule.nonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"),
    );
  }
  return causes(
    verbs,
    none(rule.apiGroups) && required(`${path}.apiGroups`, "resource rules must supply at least one api group"),
    none(rule.resources) && required(`${path}.resources`, "resource rules must supply at least one resource"),
  );
}

function roleStrategyFor(clusterWide: boolean): Strategy {
  return {
    validate: (role) =>
      ((role["rules"] ?? []) as PolicyRule[]).flatMap((rule, i) => ruleProblems(rule, `rules[${i}]`, clusterWide)),
  };
}

export const roleStrategy = roleStrategyFor(false);
export const clusterRoleStrategy = roleStrategyFor(true);

function subjectProblems(subject: Subject, path: string, clusterWide: boolean): StatusCause[] {
  const { kind, apiGroup = "" } = subject;
  if (kind === "ServiceAccount") {
    return causes(
      apiGroup !== "" && unsupported(`${path}.apiGroup`, apiGroup, [""]),
      clusterWide && !subject.namespace && required(`${path}.namespace`),
    );
  }
  if (kind !== "User" && kind !== "Group") {
    return [unsupported(`${path}.kind`, kind, ["Group", "ServiceAccount", "User"])];
  }
  return causes(
    apiGroup !== GROUP && unsupported(`${path}.apiGroup`, apiGroup, [GROUP]),
    subject.namespace !== undefined && forbidden(`${path}.namespace`, `must not be set for a ${kind}`),
  );
}

function bindingStrategyFor(clusterWide: boolean): Strategy {
  const kinds = clusterWide ? ["ClusterRole"] : ["ClusterRole", "Role"];
  return {
    setDefaults(binding) {
      binding["roleRef"] ??= {};
      const roleRef = binding["roleRef"] as RoleRef;
      roleRef.apiGroup ||= GROUP;
      for (const subject of (binding["subjects"] ?? []) as Subject[]) {
        if (subject.kind === "User" || subject.kind === "Group") subject.apiGroup ||= GROUP;
        // A role binding's service account is its neighbour unless it says otherwise.
        if (subject.kind === "ServiceAccount" && !clusterWide) subject.namespace ||= binding.metadata.namespace ?? "";
      }
    },
    validate(binding) {
      const { apiGroup, kind } = (binding["roleRef"] ?? {}) as RoleRef;
      const subjects = (binding["subjects"] ?? []) as Subject[];
      return causes(
        apiGroup !== GROUP && unsupported("roleRef.apiGroup", apiGroup, [GROUP]),
        kind !== undefined && !kinds.includes(kind) && unsupported("roleRef.kind", kind, kinds),
        subjects.flatMap((subject, i) => subjectProblems(subject, `subjects[${i}]`, clusterWide)),
      );
    },
    validateUpdate(next, old) {
      if (isDeepStrictEqual(next["roleRef"], old["roleRef"])) return [];
      return [invalid("roleRef", next["roleRef"], "cannot change roleRef")];
    },
  };
}

export const roleBindingStrategy = bindingStrategyFor(false);
export const clusterRoleBindingStrategy = bindingStrategyFor(true);
