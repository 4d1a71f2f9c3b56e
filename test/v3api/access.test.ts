import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requestDirectly, startV3Api, type V3Api } from "../support/v3-api.ts";

/** Who may do what: the main API server is asked about everything, and about policies tier by tier. */

const V3 = "/apis/vendor.io/v3";
const POLICIES = `${V3}/namespaces/default/networkpolicies`;
const RBAC = "/apis/rbac.authorization.k8s.io/v1";

let api: V3Api;
beforeAll(async () => {
  api = await startV3Api({ rbac: true });
  await api.create(`${V3}/tiers`, tier("ops"));
  for (const name of ["open", "ops.hidden", "ops.shown"])
    expect((await api.create(POLICIES, policy(name))).status).toBe(201);
  // What lets everybody knock: whether a tier opens is decided behind the door.
  await grant("system:authenticated", "knock", [
    { apiGroups: ["vendor.io"], resources: ["networkpolicies", "globalnetworkpolicies"], verbs: ["*"] },
  ]);
});
afterAll(() => api.close());

const tier = (name: string) => ({ apiVersion: "vendor.io/v3", kind: "Tier", metadata: { name }, spec: { order: 10 } });
const policy = (name: string) => ({
  apiVersion: "vendor.io/v3",
  kind: "NetworkPolicy",
  metadata: { name },
  spec: { selector: "all()" },
});

async function grant(subject: string, name: string, rules: object[]): Promise<void> {
  const kind = subject.startsWith("system:") ? "Group" : "User";
  const metadata = { name: `${subject.replace(":", "-")}-${name}` };
  const meta = { apiVersion: "rbac.authorization.k8s.io/v1", metadata };
  await api.create(`${RBAC}/clusterroles`, { ...meta, kind: "ClusterRole", rules });
  await api.create(`${RBAC}/clusterrolebindings`, {
    ...meta,
    kind: "ClusterRoleBinding",
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: metadata.name },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind, name: subject }],
  });
}

const group = { apiGroups: ["vendor.io"] };
const names = (body: { items: { metadata: { name: string } }[] }) => body.items.map(({ metadata }) => metadata.name);

describe("a user with roles for some tiers", () => {
  beforeAll(async () => {
    await grant("dora", "tiers", [
      { ...group, resources: ["tiers"], resourceNames: ["default", "ops"], verbs: ["get"] },
      { ...group, resources: ["tier.networkpolicies"], resourceNames: ["default.*"], verbs: ["*"] },
      { ...group, resources: ["tier.networkpolicies"], resourceNames: ["ops.shown"], verbs: ["get", "list"] },
    ]);
  });

  it("does in a tier what the role for all its policies allows", async () => {
    expect((await api.as("dora", "GET", `${POLICIES}/open`)).status).toBe(200);
    expect((await api.as("dora", "POST", POLICIES, { body: policy("doras") })).status).toBe(201);
    expect((await api.as("dora", "DELETE", `${POLICIES}/doras`)).status).toBe(200);
  });

  it("does with a named policy what the role for that name allows, and nothing with its neighbours", async () => {
    expect((await api.as("dora", "GET", `${POLICIES}/ops.shown`)).status).toBe(200);
    expect((await api.as("dora", "DELETE", `${POLICIES}/ops.shown`)).status).toBe(403);
    const hidden = await api.as("dora", "GET", `${POLICIES}/ops.hidden`);
    expect(hidden.body).toMatchObject({ reason: "Forbidden", details: { name: "ops.hidden", group: "vendor.io" } });
    expect(hidden.body.message).toContain('get on tier.networkpolicies.vendor.io "ops.hidden" or "ops.*"');
  });

  it("lists what it may see of all tiers, and is refused a tier it may not list", async () => {
    expect(names((await api.as("dora", "GET", POLICIES)).body)).toEqual(["open", "ops.shown"]);
    const ops = await api.as("dora", "GET", `${POLICIES}?fieldSelector=spec.tier%3Dops`);
    expect(ops.status).toBe(403);
    expect(names((await api.as("dora", "GET", `${POLICIES}?fieldSelector=spec.tier%3Ddefault`)).body)).toEqual([
      "open",
    ]);
  });

  it("deletes, of many, only what it may delete", async () => {
    await api.create(POLICIES, policy("crumb"));
    const { body } = await api.as("dora", "DELETE", `${POLICIES}?fieldSelector=metadata.name%3Dcrumb`);
    expect(names(body)).toEqual(["crumb"]);
    expect(names((await api.get(POLICIES)).body)).toEqual(["open", "ops.hidden", "ops.shown"]);
  });
});

describe("a user who cannot see a tier", () => {
  it("can do nothing in it, whatever else was granted", async () => {
    await grant("hans", "policies", [{ ...group, resources: ["tier.networkpolicies"], verbs: ["*"] }]);
    expect((await api.as("hans", "GET", `${POLICIES}/open`)).status).toBe(403);
    expect(names((await api.as("hans", "GET", POLICIES)).body)).toEqual([]);
  });
});

describe("a user without roles", () => {
  it("is refused by the main API server already", async () => {
    const { body } = await api.as("nobody", "GET", `${V3}/tiers`);
    expect(body.message).toContain('User "nobody" cannot list resource "tiers" in API group "vendor.io"');
  });

  it("gets rights the moment they are granted, or soon after", async () => {
    await expect.poll(async () => (await api.as("late", "GET", `${V3}/ippools`)).status).toBe(403);
    await grant("late", "pools", [{ ...group, resources: ["ippools"], verbs: ["list"] }]);
    await expect.poll(async () => (await api.as("late", "GET", `${V3}/ippools`)).status).toBe(200);
  });
});

describe("somebody who comes past the main API server", () => {
  it("is nobody without a certificate, whatever the headers say", async () => {
    const headers = { "x-remote-user": "admin", "x-remote-group": "system:masters" };
    const { status, text } = await requestDirectly(api.v3, `${V3}/tiers`, { headers });
    expect(status).toBe(403);
    expect(text).toContain('User \\"system:anonymous\\" cannot list resource');
    expect((await requestDirectly(api.v3, "/metrics", { headers })).status).toBe(403);
    expect((await requestDirectly(api.v3, "/readyz")).text).toBe("ok");
  });
});

describe("what the service keeps for itself", () => {
  const CONTROLLERS = "system:serviceaccount:vendor-system:vendor-kube-controllers";
  const profile = (name: string) => ({ apiVersion: "vendor.io/v3", kind: "Profile", metadata: { name }, spec: {} });

  it("is written by its controllers alone: profiles of namespaces and accounts, and the built-in one", async () => {
    await grant(CONTROLLERS, "profiles", [{ ...group, resources: ["profiles"], verbs: ["*"] }]);
    await api.create(`${RBAC}/clusterrolebindings`, {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "controllers-are-a-user" },
      roleRef: {
        apiGroup: "rbac.authorization.k8s.io",
        kind: "ClusterRole",
        name: `${CONTROLLERS.replace(":", "-")}-profiles`,
      },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: CONTROLLERS }],
    });
    for (const name of ["kns.default", "ksa.default.web"]) {
      expect((await api.create(`${V3}/profiles`, profile(name))).body.message).toContain(
        "it mirrors a namespace or a service account",
      );
    }
    const made = await api.as(CONTROLLERS, "POST", `${V3}/profiles`, { body: profile("kns.default") });
    expect(made.status).toBe(201);
    const builtIn = await api.call("DELETE", `${V3}/profiles/vendor-default-allow`);
    expect(builtIn.body.message).toContain("it is built in and read-only");
  });

  it("includes the built-in tiers, and any tier that holds policies", async () => {
    expect((await api.get(`${V3}/tiers/baselineadminnetworkpolicy`)).body.spec).toEqual({
      order: 10_000_000,
      defaultAction: "Pass",
    });
    for (const name of ["default", "adminnetworkpolicy", "baselineadminnetworkpolicy"]) {
      expect((await api.call("DELETE", `${V3}/tiers/${name}`)).status).toBe(403);
    }
    const ops = await api.call("DELETE", `${V3}/tiers/ops`);
    expect(ops.body).toMatchObject({ code: 409, message: expect.stringContaining("the tier still has 2 policies") });
    await api.create(`${V3}/tiers`, tier("empty"));
    expect((await api.call("DELETE", `${V3}/tiers/empty`)).status).toBe(200);
    expect((await api.call("DELETE", `${V3}/tiers`)).status).toBe(403);
  });

  it("includes policies that show the orchestrator's own", async () => {
    const { body } = await api.create(POLICIES, policy("knp.default.web"));
    expect(body).toMatchObject({ code: 403, message: expect.stringContaining("it mirrors a Kubernetes policy") });
  });
});
