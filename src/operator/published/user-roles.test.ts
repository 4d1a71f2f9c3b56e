import { describe, expect, it } from "vitest";
import { vendorNames } from "../../api/names.ts";
import type { Rule } from "../render/rbac.ts";
import { operatorRights } from "./operator-rights.ts";
import { userRoles } from "./user-roles.ts";

const roles = userRoles(vendorNames).filter(({ kind }) => kind === "ClusterRole");
const rulesOf = (label: string): Rule[] =>
  roles
    .filter(({ metadata }) => metadata.labels?.[`rbac.authorization.k8s.io/aggregate-to-${label}`] === "true")
    .flatMap((role) => role["rules"] as Rule[]);
const everyRule = roles.flatMap((role) => role["rules"] as Rule[]);
const READING = ["get", "list", "watch"];

describe("the roles of users", () => {
  it("never reach the stored kinds, which know no tiers, and have no wildcard", () => {
    expect(everyRule.flatMap(({ apiGroups }) => apiGroups)).not.toContain(vendorNames.groups.stored.group);
    for (const { apiGroups, resources, verbs } of everyRule) {
      expect([...apiGroups, ...resources, ...verbs]).not.toContain("*");
    }
  });

  it("give rights to policies in the default tier alone", () => {
    const ofTiers = everyRule.filter(({ resources }) => resources.some((name) => /^tiers?\b/.test(name)));
    expect(new Set(ofTiers.flatMap(({ resourceNames = ["any"] }) => resourceNames))).toEqual(
      new Set(["default", "default.*"]),
    );
  });

  it("let view read, and edit and admin write network policies and nothing else, and preview them", () => {
    expect(new Set(rulesOf("view").flatMap(({ verbs }) => verbs))).toEqual(new Set(READING));
    const writable = (label: string) =>
      rulesOf(label)
        .filter(({ verbs }) => verbs.some((verb) => !READING.includes(verb)))
        .flatMap(({ resources }) => resources);
    // A preview stores nothing, and takes the right to write what is in it.
    expect(writable("edit")).toEqual([
      ...["networkpolicies", "stagednetworkpolicies", "stagedkubernetesnetworkpolicies"],
      ...["tier.networkpolicies", "tier.stagednetworkpolicies", "previews"],
    ]);
    expect(writable("admin")).toEqual(writable("edit"));
  });

  it("are not the operator's to grant: it has no rights in the served group", () => {
    const rules: Rule[] = Object.values(operatorRights(vendorNames)).flat();
    const groups = rules.flatMap(({ apiGroups }) => apiGroups);
    expect(groups).not.toContain(vendorNames.groups.served.group);
  });
});
