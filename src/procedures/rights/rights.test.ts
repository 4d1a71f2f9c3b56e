import { describe, expect, it } from "vitest";
import { vendorNames } from "../../api/names.ts";
import { CLUSTER_ROLES, PODS, SECRETS } from "../../cluster/kinds.ts";
import { groupRights, resourceName, rightsOn } from "./right.ts";
import { roleObjects } from "./role-objects.ts";

describe("rights in groups", () => {
  it("are one row for the verbs on the same objects; any name includes each name", () => {
    const rights = [
      ...rightsOn(PODS, ["get", "list"], { namespace: "a", name: "one" }),
      ...rightsOn(PODS, ["list"], { namespace: "a" }),
      ...rightsOn(PODS, ["get"], { namespace: "a", name: "two" }),
      ...rightsOn(PODS, ["get"], { namespace: "a", subresource: "log" }),
    ];
    expect(groupRights(rights)).toEqual([
      { verbs: ["get"], group: "", resource: "pods", namespace: "a", names: ["one", "two"] },
      { verbs: ["list"], group: "", resource: "pods", namespace: "a", names: [] },
      { verbs: ["get"], group: "", resource: "pods/log", namespace: "a", names: [] },
    ]);
    expect(groupRights([...rights].reverse())).toEqual(groupRights(rights));
  });

  it("have no name where a request has none", () => {
    expect(rightsOn(SECRETS, ["create", "delete"], { namespace: "a", name: "one" })).toEqual([
      { verb: "create", group: "", resource: "secrets", namespace: "a" },
      { verb: "delete", group: "", resource: "secrets", namespace: "a", name: "one" },
    ]);
  });

  it("name resources as kubectl does", () => {
    expect(resourceName({ group: "apps", resource: "deployments/scale" })).toBe("deployments.apps/scale");
  });
});

describe("the roles of rights", () => {
  it("are a ClusterRole, and a Role for each namespace that the run neither creates nor deletes", () => {
    const rights = [
      ...rightsOn(CLUSTER_ROLES, ["get"], { name: "one" }),
      ...rightsOn(SECRETS, ["list"], { namespace: "kube-system" }),
      ...rightsOn(PODS, ["list"], { namespace: "vendor-system" }),
    ];
    expect(roleObjects("vendorctl-test", rights, vendorNames)).toEqual([
      {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRole",
        metadata: { name: "vendorctl-test" },
        rules: [
          { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
          {
            apiGroups: ["rbac.authorization.k8s.io"],
            resources: ["clusterroles"],
            resourceNames: ["one"],
            verbs: ["get"],
          },
        ],
      },
      {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "Role",
        metadata: { name: "vendorctl-test", namespace: "kube-system" },
        rules: [{ apiGroups: [""], resources: ["secrets"], verbs: ["list"] }],
      },
    ]);
  });
});
