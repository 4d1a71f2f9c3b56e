import { request } from "node:https";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { UserInfo } from "../../src/apiserver/call.ts";
import { issue } from "../../src/kit/x509.ts";
import { type ClusterKeys, createClusterKeys } from "../../src/local/certificates.ts";
import { bootstrapRoles } from "../../src/local/rbac-bootstrap.ts";
import { type Answer, type Api, startApi } from "../support/api.ts";

/** Who are you, and may you: certificates, tokens, roles, and the reviews that answer such questions. */

const now = new Date();
const keys: ClusterKeys = createClusterKeys(["127.0.0.1", "localhost"], now);
const BOB: UserInfo = { name: "bob", groups: ["team", "system:authenticated"] };
let api: Api;
let port: number;

interface Identity {
  cert?: string;
  key?: string;
  token?: string;
  headers?: Record<string, string>;
}

async function ask(identity: Identity, method: string, path: string, body?: unknown): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const headers: Record<string, string> = { "content-type": "application/json", ...identity.headers };
    if (identity.token) headers["authorization"] = `Bearer ${identity.token}`;
    const { cert, key } = identity;
    const sent = request(
      { host: "127.0.0.1", port, method, path, headers, ca: keys.authority.certificate, cert, key },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () =>
          resolve({
            status: response.statusCode!,
            headers: new Headers(),
            body: text.startsWith("{") ? JSON.parse(text) : text,
          }),
        );
      },
    );
    sent.on("error", reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const admin: Identity = { cert: keys.admin.certificate, key: keys.admin.key };

beforeAll(async () => {
  api = await startApi({
    authorization: "rbac",
    staticTokens: new Map([["bobs-token", BOB]]),
    serviceAccounts: { key: keys.serviceAccountKey, issuer: "https://story" },
  });
  const listening = await api.server.listen({
    host: "127.0.0.1",
    port: 0,
    tls: {
      server: keys.server,
      clientAuthority: keys.authority.certificate,
      frontProxyAuthority: keys.frontProxyAuthority.certificate,
    },
  });
  port = listening.port;
  for (const name of ["default", "kube-system"]) {
    await ask(admin, "POST", "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  for (const object of bootstrapRoles()) {
    const plural = `${object.kind.toLowerCase()}s`;
    const where = object.metadata.namespace ? `/namespaces/${object.metadata.namespace}` : "";
    const made = await ask(admin, "POST", `/apis/rbac.authorization.k8s.io/v1${where}/${plural}`, object);
    expect(made.status, JSON.stringify(made.body)).toBe(201);
  }
});
afterAll(() => api.close());

describe("who is there", () => {
  it("a client certificate names a user and its groups", async () => {
    const who = await ask(admin, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {
      apiVersion: "authentication.k8s.io/v1",
      kind: "SelfSubjectReview",
    });
    expect(who.body.status.userInfo).toEqual({
      username: "kubernetes-admin",
      groups: ["system:masters", "system:authenticated"],
    });
  });

  it("nobody in particular may ask for the version and nothing else", async () => {
    expect((await ask({}, "GET", "/version")).status).toBe(200);
    const refused = await ask({}, "GET", "/api/v1/namespaces/default/pods");
    expect(refused.body.message).toBe(
      'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "default"',
    );
  });

  it("a wrong token is nobody, a certificate of another authority too", async () => {
    expect((await ask({ token: "guess" }, "GET", "/version")).status).toBe(401);
    const other = createClusterKeys(["127.0.0.1"], now);
    const stranger = { cert: other.admin.certificate, key: other.admin.key };
    expect((await ask(stranger, "GET", "/version")).status).toBe(401);
  });

  it("a front proxy speaks for the users it has authenticated, and only it may", async () => {
    const claim = { "x-remote-user": "kubernetes-admin", "x-remote-group": "system:masters" };
    const proxy = { cert: keys.frontProxy.certificate, key: keys.frontProxy.key, headers: claim };
    expect((await ask(proxy, "GET", "/api/v1/nodes")).status).toBe(200);
    expect((await ask({ headers: claim }, "GET", "/api/v1/nodes")).status).toBe(403);
  });

  it("a certificate that has ended is nobody's", async () => {
    const expired = issue(keys.authority, {
      subject: { commonName: "late", organizations: ["system:masters"] },
      usage: "client",
      notBefore: new Date("2020-01-01"),
      days: 1,
    });
    expect((await ask({ cert: expired.certificate, key: expired.key }, "GET", "/version")).status).toBe(401);
  });
});

describe("service accounts", () => {
  const ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts";

  it("get tokens that work until the account is gone", async () => {
    await ask(admin, "POST", ACCOUNTS, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot" } });
    const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 600 } };
    const { token } = (await ask(admin, "POST", `${ACCOUNTS}/robot/token`, request)).body.status;
    const who = await ask({ token }, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {
      kind: "SelfSubjectReview",
      apiVersion: "authentication.k8s.io/v1",
    });
    expect(who.body.status.userInfo.username).toBe("system:serviceaccount:default:robot");
    const review = await ask(admin, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenReview",
      spec: { token },
    });
    expect(review.body.status).toMatchObject({
      authenticated: true,
      user: { username: "system:serviceaccount:default:robot" },
    });
    await ask(admin, "DELETE", `${ACCOUNTS}/robot`);
    expect((await ask({ token }, "GET", "/version")).status).toBe(401);
  });
});

describe("roles", () => {
  const bob: Identity = { token: "bobs-token" };
  const can = async (verb: string, resource: string, namespace = "default", group = "") =>
    (
      await ask(bob, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SelfSubjectAccessReview",
        spec: { resourceAttributes: { verb, resource, namespace, group } },
      })
    ).body.status;

  it("a binding gives exactly its role, in its namespace, at once, and takes it back", async () => {
    expect((await can("list", "pods")).allowed).toBe(false);
    const bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    await ask(admin, "POST", bindings, {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { name: "bob-views" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
      subjects: [{ kind: "Group", name: "team", apiGroup: "rbac.authorization.k8s.io" }],
    });
    expect(await can("list", "pods")).toMatchObject({
      allowed: true,
      reason: 'RBAC: allowed by RoleBinding "default/bob-views" of ClusterRole "view"',
    });
    expect((await can("delete", "pods")).allowed).toBe(false);
    expect((await can("list", "pods", "kube-system")).allowed).toBe(false);
    expect((await can("get", "secrets")).allowed).toBe(false);
    expect((await ask(bob, "GET", "/api/v1/namespaces/default/pods")).status).toBe(200);
    await ask(admin, "DELETE", `${bindings}/bob-views`);
    expect((await ask(bob, "GET", "/api/v1/namespaces/default/pods")).status).toBe(403);
  });

  it("an aggregated role has the rules of aggregated roles it selects: edit reads what view reads", async () => {
    const bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    for (const name of ["edit", "admin"]) {
      await ask(admin, "POST", bindings, {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "RoleBinding",
        metadata: { name: "bob-has" },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
        subjects: [{ kind: "User", name: "bob", apiGroup: "rbac.authorization.k8s.io" }],
      });
      expect([name, (await can("list", "pods")).allowed, (await can("delete", "pods")).allowed]).toEqual([
        name,
        true,
        true,
      ]);
      await ask(admin, "DELETE", `${bindings}/bob-has`);
    }
  });

  it("a rule for one name allows a list or watch of that name alone, as in Kubernetes", async () => {
    const group = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    const type = { apiVersion: "rbac.authorization.k8s.io/v1", metadata: { name: "bob-one" } };
    const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["list", "watch"], resourceNames: ["one"] }];
    await ask(admin, "POST", `${group}/roles`, { ...type, kind: "Role", rules });
    await ask(admin, "POST", `${group}/rolebindings`, {
      ...{ ...type, kind: "RoleBinding" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "bob-one" },
      subjects: [{ kind: "Group", name: "team", apiGroup: "rbac.authorization.k8s.io" }],
    });
    const list = async (selector: string) =>
      (await ask(bob, "GET", `/api/v1/namespaces/default/configmaps${selector}`)).status;
    expect(await list("?fieldSelector=metadata.name%3Done")).toBe(200);
    expect(await list("?fieldSelector=metadata.name%3Done&watch=true&timeoutSeconds=1")).toBe(200);
    expect(await list("?fieldSelector=metadata.name%3Dtwo")).toBe(403);
    expect(await list("?fieldSelector=metadata.name!%3Done")).toBe(403);
    expect(await list("")).toBe(403);
    await ask(admin, "DELETE", `${group}/rolebindings/bob-one`);
  });

  it("nobody gives away more than they have, unless they were given that right itself", async () => {
    const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    const role = (name: string, rules: object[]) => ({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata: { name },
      rules,
    });
    const binding = (name: string, ref: object, subject: string) => ({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", ...ref },
      subjects: [{ kind: "User", name: subject, apiGroup: "rbac.authorization.k8s.io" }],
    });
    const writesRoles = [
      { apiGroups: ["rbac.authorization.k8s.io"], resources: ["roles", "rolebindings"], verbs: ["create"] },
      { apiGroups: [""], resources: ["pods", "pods/log"], verbs: ["get", "list"] },
    ];
    await ask(admin, "POST", `${rbac}/roles`, role("role-writer", writesRoles));
    await ask(
      admin,
      "POST",
      `${rbac}/rolebindings`,
      binding("bob-writes", { kind: "Role", name: "role-writer" }, "bob"),
    );

    const pods = { apiGroups: [""], resources: ["pods"], verbs: ["get"] };
    expect((await ask(bob, "POST", `${rbac}/roles`, role("reader", [pods]))).status).toBe(201);
    const greedy = await ask(bob, "POST", `${rbac}/roles`, role("greedy", [{ ...pods, verbs: ["get", "delete"] }]));
    expect(greedy.status).toBe(403);
    expect(greedy.body.message).toBe(
      'roles.rbac.authorization.k8s.io "greedy" is forbidden: user "bob" (groups=["team" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n' +
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "delete"]}',
    );
    const bind = (ref: object) => ask(bob, "POST", `${rbac}/rolebindings`, binding(`b-${Math.random()}`, ref, "eve"));
    expect((await bind({ kind: "Role", name: "reader" })).status).toBe(201);
    expect((await bind({ kind: "ClusterRole", name: "cluster-admin" })).status).toBe(403);

    await ask(admin, "PUT", `${rbac}/roles/role-writer`, {
      ...role("role-writer", [
        ...writesRoles,
        { apiGroups: ["rbac.authorization.k8s.io"], resources: ["clusterroles"], verbs: ["bind"] },
      ]),
    });
    expect((await bind({ kind: "ClusterRole", name: "cluster-admin" })).status).toBe(201);
  });

  it("who acts as a service account is in its groups", async () => {
    const robot = { "impersonate-user": "system:serviceaccount:default:robot" };
    const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
    const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    const { body } = await ask({ ...admin, headers: robot }, "POST", path, review);
    expect(body.status.userInfo.groups).toEqual([
      "system:serviceaccounts",
      "system:serviceaccounts:default",
      "system:authenticated",
    ]);
    expect((await ask({ ...bob, headers: robot }, "GET", "/version")).body.message).toBe(
      'serviceaccounts "robot" is forbidden: User "bob" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "default"',
    );
  });

  it("only those who may impersonate can act as another", async () => {
    const asBob = { "impersonate-user": "bob" };
    expect((await ask({ ...admin, headers: asBob }, "GET", "/api/v1/nodes")).status).toBe(403);
    expect((await ask({ ...bob, headers: { "impersonate-user": "alice" } }, "GET", "/version")).body.message).toContain(
      "cannot impersonate",
    );
  });
});
