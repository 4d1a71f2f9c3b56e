import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { bootstrapRoles } from "../../src/local/rbac-bootstrap.ts";
import { userRoles } from "../../src/operator/published/user-roles.ts";
import { startV3Api, type V3Api } from "../support/v3-api.ts";

/** The roles that come with the operator, on the API server of the embedded cluster with Kubernetes' own roles. */

const V3 = "/apis/vendor.io/v3";
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const GROUP = "rbac.authorization.k8s.io";

let api: V3Api;
beforeAll(async () => {
  api = await startV3Api({ rbac: true });
  for (const role of [...bootstrapRoles(), ...userRoles(vendorNames)]) await created(role);
  for (const name of ["team", "other"]) {
    await created({ apiVersion: "v1", kind: "Namespace", metadata: { name } }, "/api/v1/namespaces");
  }
  await bind("edit", "tenant", "team");
  await bind("view", "reader", "team");
  await bind("view", "auditor");
  expect((await api.create(`${V3}/tiers`, tier("platform"))).status).toBe(201);
  for (const name of ["shown", "platform.hidden"]) {
    expect((await api.create(policies("team"), policy(name))).status).toBe(201);
  }
});
afterAll(() => api.close());

async function created({ apiVersion, kind, metadata, ...rest }: KubeObject, path?: string): Promise<void> {
  const within = metadata.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
  const made = await api.create(path ?? `${RBAC}${within}/${kind.toLowerCase()}s`, {
    apiVersion,
    kind,
    metadata,
    ...rest,
  });
  expect([201, 409]).toContain(made.status);
}

function bind(role: string, user: string, namespace?: string): Promise<void> {
  return created({
    apiVersion: `${GROUP}/v1`,
    kind: namespace === undefined ? "ClusterRoleBinding" : "RoleBinding",
    metadata: { name: `${user}-${role}`, ...(namespace !== undefined && { namespace }) },
    roleRef: { apiGroup: GROUP, kind: "ClusterRole", name: role },
    subjects: [{ apiGroup: GROUP, kind: "User", name: user }],
  });
}

const tier = (name: string) => ({ apiVersion: "vendor.io/v3", kind: "Tier", metadata: { name }, spec: { order: 10 } });
const policy = (name: string) => ({
  apiVersion: "vendor.io/v3",
  kind: "NetworkPolicy",
  metadata: { name },
  spec: { selector: "all()" },
});
const policies = (namespace: string) => `${V3}/namespaces/${namespace}/networkpolicies`;
const status = async (user: string, method: "GET" | "POST" | "DELETE", path: string, body?: object) =>
  (await api.as(user, method, path, body === undefined ? {} : { body })).status;

describe("a user with edit in one namespace and nothing else", () => {
  it("writes and reads network policies of the default tier there, and nowhere else", async () => {
    expect(await status("tenant", "POST", policies("team"), policy("web"))).toBe(201);
    expect(await status("tenant", "GET", `${policies("team")}/web`)).toBe(200);
    expect(await status("tenant", "DELETE", `${policies("team")}/web`)).toBe(200);
    expect(await status("tenant", "GET", policies("other"))).toBe(403);
    expect(await status("tenant", "POST", policies("other"), policy("web"))).toBe(403);
  });

  it("reaches no other tier, neither through the API nor through the stored kinds", async () => {
    const { body } = await api.as("tenant", "GET", policies("team"));
    expect(body.items.map(({ metadata }: KubeObject) => metadata.name)).toEqual(["shown"]);
    expect(await status("tenant", "GET", `${policies("team")}/platform.hidden`)).toBe(403);
    expect(await status("tenant", "POST", policies("team"), policy("platform.web"))).toBe(403);
    expect(await status("tenant", "GET", `${V3}/tiers/platform`)).toBe(403);
    expect(await status("tenant", "GET", `${V3}/tiers`)).toBe(403);
    const stored = "/apis/crd.vendor.io/v1/namespaces/team/networkpolicies";
    expect(await status("tenant", "GET", stored)).toBe(403);
    const body2 = { ...policy("default.web"), apiVersion: "crd.vendor.io/v1" };
    expect(await status("tenant", "POST", stored, body2)).toBe(403);
  });

  it("reads network sets and does not write them: policies of other namespaces select them by labels", async () => {
    const sets = `${V3}/namespaces/team/networksets`;
    const body = { apiVersion: "vendor.io/v3", kind: "NetworkSet", metadata: { name: "any" }, spec: { nets: [] } };
    expect(await status("tenant", "GET", sets)).toBe(200);
    expect(await status("tenant", "POST", sets, body)).toBe(403);
  });

  it("sees nothing that belongs to the cluster", async () => {
    for (const plural of ["globalnetworkpolicies", "globalnetworksets", "ippools", "hostendpoints", "profiles"]) {
      expect([plural, await status("tenant", "GET", `${V3}/${plural}`)]).toEqual([plural, 403]);
    }
    expect(await status("tenant", "GET", "/apis/operator.vendor.io/v1/installations")).toBe(403);
  });
});

describe("a user with view", () => {
  it("in one namespace reads the policies there, and writes none", async () => {
    expect(await status("reader", "GET", `${policies("team")}/shown`)).toBe(200);
    expect(await status("reader", "POST", policies("team"), policy("web"))).toBe(403);
    expect(await status("reader", "GET", policies("other"))).toBe(403);
  });

  it("in the whole cluster reads what is not in a namespace too, and writes none of it", async () => {
    for (const plural of ["globalnetworkpolicies", "globalnetworksets", "ippools", "networkpolicies"]) {
      expect([plural, await status("auditor", "GET", `${V3}/${plural}`)]).toEqual([plural, 200]);
    }
    expect(await status("auditor", "GET", "/apis/operator.vendor.io/v1/vendorstatuses")).toBe(200);
    expect(await status("auditor", "DELETE", `${V3}/ippools/any`)).toBe(403);
    expect(await status("auditor", "GET", `${V3}/ipamblocks`)).toBe(403);
    expect(await status("auditor", "GET", `${policies("team")}/platform.hidden`)).toBe(403);
  });
});
