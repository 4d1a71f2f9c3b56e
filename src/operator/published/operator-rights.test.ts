import { describe, expect, it } from "vitest";
import { vendorNames } from "../../api/names.ts";
import { apiServerRights, kubeControllersRights, nodeAgentRights } from "../render/component-rules.ts";
import { READ, type Rule, rule } from "../render/rbac.ts";
import { mergeRules } from "./merge-rules.ts";
import { operatorRights } from "./operator-rights.ts";

const rights = operatorRights(vendorNames);
const everyRule = Object.values(rights).flat();

/** Whether rules allow something, as the orchestrator decides it. */
function allow(
  rules: readonly Rule[],
  asked: { group: string; resource: string; verb: string; name?: string },
): boolean {
  return rules.some(
    ({ apiGroups, resources, resourceNames, verbs }) =>
      apiGroups.includes(asked.group) &&
      resources.includes(asked.resource) &&
      verbs.includes(asked.verb) &&
      (!resourceNames || (asked.name !== undefined && resourceNames.includes(asked.name))),
  );
}

/** What a rule allows, one by one. */
function grants(each: Rule) {
  return each.apiGroups.flatMap((group) =>
    each.resources.flatMap((resource) =>
      each.verbs.flatMap((verb) =>
        (each.resourceNames ?? [undefined]).map((name) => ({ group, resource, verb, ...(name ? { name } : {}) })),
      ),
    ),
  );
}

describe("the operator", () => {
  it("may do nothing by a wildcard", () => {
    for (const { apiGroups, resources, verbs } of everyRule) {
      expect([...apiGroups, ...resources, ...verbs].filter((word) => word.includes("*"))).toEqual([]);
    }
  });

  it("sees Secrets in its own namespace and the system namespace, nowhere else", () => {
    const seen = (rules: readonly Rule[]) => allow(rules, { group: "", resource: "secrets", verb: "list" });
    expect([seen(rights.ownNamespace), seen(rights.systemNamespace)]).toEqual([true, true]);
    expect([seen(rights.everywhere), seen(rights.orchestratorNamespace)]).toEqual([false, false]);
  });

  it("can run pods in the system namespace only", () => {
    for (const resource of ["daemonsets", "deployments"]) {
      const create = { group: "apps", resource, verb: "create" };
      expect(allow(rights.systemNamespace, create)).toBe(true);
      expect(allow([...rights.everywhere, ...rights.ownNamespace, ...rights.orchestratorNamespace], create)).toBe(
        false,
      );
    }
  });

  it("can patch the service proxy and no other daemon set beside it", () => {
    const patch = (name: string) =>
      allow(rights.orchestratorNamespace, { group: "apps", resource: "daemonsets", verb: "patch", name });
    expect([patch("kube-proxy"), patch("node-local-dns")]).toEqual([true, false]);
  });

  it("has every right it gives, because the orchestrator refuses to let it give others", () => {
    const components = [
      nodeAgentRights(vendorNames, "generic"),
      nodeAgentRights(vendorNames, "openshift"),
      kubeControllersRights(vendorNames),
      apiServerRights(vendorNames),
    ];
    const missing = (given: readonly Rule[], held: readonly Rule[]) =>
      given.flatMap(grants).filter((each) => !allow(held, each));
    for (const { everywhere, atHome } of components) {
      expect(missing(everywhere, rights.everywhere)).toEqual([]);
      expect(missing(atHome, [...rights.everywhere, ...rights.systemNamespace])).toEqual([]);
    }
  });

  it("can change only those cluster roles and namespaces that are its own", () => {
    const change = (resource: string, group: string, name: string) =>
      allow(rights.everywhere, { group, resource, verb: "patch", name });
    expect(change("clusterroles", "rbac.authorization.k8s.io", "vendor-node")).toBe(true);
    expect(change("clusterroles", "rbac.authorization.k8s.io", "cluster-admin")).toBe(false);
    expect(change("namespaces", "", "vendor-system")).toBe(true);
    expect(change("namespaces", "", "kube-system")).toBe(false);
  });
});

describe("merged rules", () => {
  it("allow exactly what the rules allowed", () => {
    const given = [
      rule("", ["pods", "nodes"], READ),
      rule("", ["pods"], ["patch"]),
      rule("", ["pods"], ["delete"], ["one"]),
      rule("apps", ["deployments"], READ),
      rule("", ["services"], READ),
    ];
    const all = (rules: readonly Rule[]) => new Set(rules.flatMap(grants).map((each) => JSON.stringify(each)));
    expect(all(mergeRules(given))).toEqual(all(given));
    expect(mergeRules(given)).toEqual(mergeRules([...given].reverse()));
  });

  it("lose no verb that a role of ours uses", () => {
    const verbs = new Set(everyRule.flatMap(({ verbs: each }) => each));
    expect([...verbs].sort()).toEqual(["bind", "create", "delete", "get", "list", "patch", "update", "use", "watch"]);
  });
});
