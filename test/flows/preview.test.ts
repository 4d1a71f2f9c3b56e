import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FlowKey } from "../../src/api/protocol/flow.ts";
import type { FlowPreview, FlowPreviewSpec } from "../../src/api/protocol/flow-preview.ts";
import { flowBatch, flowRow, outside, policyHit, workload } from "../../src/flows/flow.fixture.ts";
import { type FlowsApi, startFlowsApi } from "../support/flows-api.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";

/**
 * What a change of policy would do to recorded flows. The administrator may do everything; paul has Kubernetes' `edit` in the namespace pay, vera `view`
 * there; fred may preview and write policies of pay, but neither list flows nor get policies.
 */

const V1 = "/apis/flows.vendor.io/v1";
const STORED = "/apis/crd.vendor.io/v1";
const KUBERNETES = "/apis/networking.k8s.io/v1/namespaces";
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
/** In labels, names and addresses of the namespace shop, and policies of a tier that only the administrator may see. */
const SECRET = /secret-\w+|10\.244\.1\.\d/;

let flows: FlowsApi;
let tool: InProcessVendorctl | undefined;
beforeAll(async () => {
  flows = await startFlowsApi(["root", "paul", "vera", "fred", "writer"]);
  await flows.bind("root", "cluster-admin");
  await flows.bind("paul", "edit", "pay");
  await flows.bind("vera", "view", "pay");
  await put(`${RBAC}/clusterroles`, {
    metadata: { name: "previews-only" },
    rules: [
      { apiGroups: ["flows.vendor.io"], resources: ["previews"], verbs: ["create"] },
      { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["create"] },
      { apiGroups: ["vendor.io"], resources: ["networkpolicies", "tier.networkpolicies"], verbs: ["create"] },
    ],
  });
  await put(`${RBAC}/clusterroles`, {
    metadata: { name: "list-flows" },
    rules: [{ apiGroups: ["flows.vendor.io"], resources: ["flows"], verbs: ["list"] }],
  });
  await flows.bind("fred", "previews-only", "pay");
  await flows.bind("vera", "previews-only", "shop");
  await flows.bind("writer", "previews-only", "pay");
  await flows.bind("writer", "list-flows", "pay");
  for (const [index, name] of ["node-1", "node-2"].entries())
    await put("/api/v1/nodes", {
      metadata: { name },
      status: { addresses: [{ type: "InternalIP", address: `172.16.0.${index + 1}` }] },
    });
  await pod("shop", "web", "node-1", "10.244.1.7", { app: "web", "secret-label": "secret-value" });
  await pod("pay", "db", "node-2", "10.244.2.9");
  await pod("pay", "ledger", "node-2", "10.244.2.10");
  await put(`${STORED}/tiers`, { metadata: { name: "front" }, spec: { order: 10, defaultAction: "Pass" } });
  await put(`${STORED}/globalnetworkpolicies`, {
    metadata: { name: "front.secret-policy" },
    spec: {
      ...{ tier: "front", selector: 'app == "ledger"', types: ["Ingress"] },
      ingress: [{ action: "Deny", protocol: "TCP", destination: { ports: [9999] } }],
    },
  });
  await put(`${KUBERNETES}/pay/networkpolicies`, {
    metadata: { name: "ledger", namespace: "pay" },
    spec: {
      podSelector: { matchLabels: { app: "ledger" } },
      policyTypes: ["Ingress"],
      ingress: [{ ports: [{ protocol: "TCP", port: 443 }] }],
    },
  });
  const shopWeb = workload("shop", "web", { app: "web", "secret-label": "secret-value" });
  const row = (key: Partial<FlowKey>, connections: number) =>
    flowRow(
      { from: shopWeb, verdict: "Allow", policies: [], ...key },
      {
        ...{ started: connections, packets: connections },
        sourceAddresses: [key.from?.type === "Outside" ? "203.0.113.7" : "10.244.1.7"],
      },
    );
  const db = workload("pay", "db");
  const ledger = workload("pay", "ledger");
  await flows.send(
    flowBatch(
      [
        row({ to: db, port: 5432 }, 30),
        // The same two ends, counted where they leave as well: one question.
        row({ to: db, port: 5432, reporter: "Source" }, 30),
        row({ to: ledger, port: 443 }, 20),
        row({ to: ledger, port: 8443, verdict: "Deny", policies: [policyHit()] }, 10),
        row({ from: outside, to: db, port: 5433 }, 5),
        row({ from: workload("shop", "gone"), to: db, port: 5432 }, 4),
      ],
      { node: "node-2", until: Date.now() },
    ),
  );
});
afterAll(async () => {
  tool?.close();
  await flows?.close();
});

async function send(method: "POST" | "PATCH", path: string, body: object): Promise<void> {
  const headers = { "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json" };
  const response = await flows.api.server.transport().request({ method, path, headers, body: JSON.stringify(body) });
  if (response.status >= 300) throw new Error(`${path}: ${await response.text()}`);
}

const put = (path: string, object: object) => send("POST", path, object);

async function pod(namespace: string, app: string, nodeName: string, ip: string, labels: object = { app }) {
  const metadata = { name: `${app}-5d8f-x2x`, namespace, labels };
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: `${app}-5d8f`, uid: `uid-${app}`, controller: true };
  await put(`/api/v1/namespaces/${namespace}/pods`, {
    metadata: { ...metadata, labels: { ...labels, "pod-template-hash": "5d8f" }, ownerReferences: [owner] },
    spec: { nodeName, containers: [{ name: "main", image: "main" }] },
  });
  const status = { status: { phase: "Running", podIP: ip, podIPs: [{ ip }] } };
  await send("PATCH", `/api/v1/namespaces/${namespace}/pods/${metadata.name}/status`, status);
}

function post(user: string, namespace: string, spec: FlowPreviewSpec | object) {
  const base = namespace === "" ? V1 : `${V1}/namespaces/${namespace}`;
  const body = { apiVersion: "flows.vendor.io/v1", kind: "FlowPreview", spec };
  return flows.ask(`${base}/previews`, { token: flows.tokenOf(user) }, body);
}

async function preview(user: string, namespace: string, spec: FlowPreviewSpec): Promise<FlowPreview["status"]> {
  const { status, body } = await post(user, namespace, spec);
  expect(status, JSON.stringify(body)).toBe(201);
  expect(body).toMatchObject({ kind: "FlowPreview", spec });
  return (body as FlowPreview).status;
}

async function refusal(user: string, namespace: string, spec: object): Promise<[number, string]> {
  const { status, body } = await post(user, namespace, spec);
  return [status, body.message ?? JSON.stringify(body)];
}

const kubernetesPolicy = (name: string, spec: object, namespace = "pay") => ({
  ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name, namespace }, spec },
});
const v3 = (kind: string, metadata: { name: string; namespace?: string }, spec: object) => ({
  ...{ apiVersion: "vendor.io/v3", kind, metadata, spec },
});
const ledgerPolicy = { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", namespace: "pay", name: "ledger" };
const denyAll = kubernetesPolicy("deny-all", { podSelector: {}, policyTypes: ["Ingress"] });

const told = ({ changed }: FlowPreview["status"]) =>
  changed.map(({ from, to, port, verdict, then: after }) => `${verdict} to ${after}: ${from.name} ${to.name} ${port}`);

describe("a preview", () => {
  it("of a new default deny has what it would deny, each pair once, and what decides", async () => {
    const status = await preview("root", "", { objects: [denyAll] });
    expect(told(status)).toEqual(["Allow to Deny: web db 5432", "Allow to Deny: public db 5433"]);
    expect(status.changed[0]).toMatchObject({
      ...{ flows: 2, connections: 60, thenBy: { direction: "Ingress", kind: "EndOfTier", tier: "default" } },
      decidedBy: { kind: "Profile", direction: "Ingress" },
      from: { labels: { "secret-label": "secret-value" } },
    });
    expect(status).toMatchObject({ pairs: 5, flows: 6, same: 2 });
    expect(status.changed[0]?.ids).toHaveLength(2);
  });

  it("has flows whose pods are gone apart, with the reason", async () => {
    const { unknown } = await preview("root", "", { objects: [denyAll] });
    expect(unknown).toEqual([
      expect.objectContaining({ reason: "shop/gone has no pods with an address any more.", pairs: 1, connections: 4 }),
    ]);
  });

  it("of a change of a policy that is there has what its new rules allow", async () => {
    const ports = [443, 8443].map((port) => ({ protocol: "TCP", port }));
    const changed = kubernetesPolicy("ledger", {
      ...{ podSelector: { matchLabels: { app: "ledger" } }, policyTypes: ["Ingress"], ingress: [{ ports }] },
    });
    const status = await preview("paul", "pay", { objects: [changed] });
    expect(told(status)).toEqual(["Deny to Allow: web ledger 8443"]);
    expect(status.changed[0]).toMatchObject({
      decidedBy: { kind: "EndOfTier", tier: "default" },
      thenBy: { kind: "KubernetesNetworkPolicy", namespace: "pay", name: "ledger", rule: 0, action: "Allow" },
    });
  });

  it("of a policy beside those that are there has the denial that it ends", async () => {
    const allow = v3(
      "NetworkPolicy",
      { name: "allow-web", namespace: "pay" },
      {
        ...{
          selector: 'app == "ledger"',
          ingress: [{ action: "Allow", protocol: "TCP", destination: { ports: [8443] } }],
        },
      },
    );
    const status = await preview("root", "pay", { objects: [allow] });
    expect(told(status)).toEqual(["Deny to Allow: web ledger 8443"]);
    expect(status.changed[0]?.thenBy).toMatchObject({ kind: "NetworkPolicy", name: "default.allow-web", rule: 0 });
  });

  it("of a deletion has what is no longer denied, and what goes together is previewed together", async () => {
    expect(told(await preview("paul", "pay", { delete: [ledgerPolicy] }))).toEqual(["Deny to Allow: web ledger 8443"]);
    const both = await preview("paul", "pay", { delete: [ledgerPolicy], objects: [denyAll] });
    expect(told(both)).toEqual([
      "Allow to Deny: web db 5432",
      "Allow to Deny: web ledger 443",
      "Allow to Deny: public db 5433",
    ]);
  });

  it("of a tier with its policies asks them in their order", async () => {
    const status = await preview("root", "", {
      objects: [
        v3("Tier", { name: "first" }, { order: 5 }),
        v3(
          "GlobalNetworkPolicy",
          { name: "first.web" },
          {
            ...{
              tier: "first",
              selector: 'app == "db"',
              ingress: [{ action: "Allow", source: { selector: 'app == "web"' } }],
            },
          },
        ),
      ],
    });
    expect(told(status)).toEqual(["Allow to Deny: public db 5433"]);
    expect(status.changed[0]?.thenBy).toMatchObject({ kind: "EndOfTier", tier: "first" });
  });

  it("of a network set asks the policies that select it", async () => {
    const set = v3("GlobalNetworkSet", { name: "clients" }, { nets: ["10.244.1.0/24"] });
    const policy = v3(
      "GlobalNetworkPolicy",
      { name: "front.clients" },
      {
        ...{ tier: "front", selector: 'app == "db"', types: ["Ingress"] },
        ingress: [{ action: "Deny", source: { selector: 'team == "clients"' } }],
      },
    );
    expect(told(await preview("root", "", { objects: [set, policy] }))).toEqual([]);
    const labelled = { ...set, metadata: { ...set.metadata, labels: { team: "clients" } } };
    expect(told(await preview("root", "", { objects: [labelled, policy] }))).toContain("Allow to Deny: web db 5432");
  });

  it("asks only flows of the query and the time", async () => {
    const status = await preview("root", "", { objects: [denyAll], query: "port:5433" });
    expect(status).toMatchObject({ pairs: 1, same: 0 });
    const { pairs } = await preview("root", "", { objects: [denyAll], until: "2001-01-01T00:00:00Z" });
    expect(pairs).toBe(0);
  });

  it("changes nothing that is stored", async () => {
    const path = `${KUBERNETES}/pay/networkpolicies`;
    const { body } = await flows.ask(path, { token: flows.tokenOf("root") });
    expect(body.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(["ledger"]);
  });
});

describe("who previews", () => {
  it("in one namespace sees its flows as in a list, and nothing of others but names", async () => {
    const status = await preview("paul", "pay", { objects: [denyAll] });
    expect(told(status)).toEqual(["Allow to Deny: web db 5432", "Allow to Deny: public db 5433"]);
    expect(status.changed[0]?.from).toEqual({ type: "Workload", namespace: "shop", name: "web" });
    expect(JSON.stringify(status)).not.toMatch(SECRET);
    expect(status.notes).toEqual([
      "Ends in namespaces whose flows you may not list were asked about only where the flow was counted.",
    ]);
  });

  it("is told only kind, tier and action of policies that it may not get, but for those that it sent", async () => {
    const deny = v3(
      "NetworkPolicy",
      { name: "deny", namespace: "pay" },
      {
        ...{ order: 1, selector: 'app == "ledger"' },
        ingress: [{ action: "Deny", protocol: "TCP", destination: { ports: [443] } }],
      },
    );
    const { changed } = await preview("writer", "pay", { objects: [deny] });
    expect(changed).toHaveLength(1);
    expect(changed[0]).toMatchObject({
      decidedBy: { kind: "KubernetesNetworkPolicy", tier: "default", namespace: "", name: "", action: "Allow" },
      thenBy: { kind: "NetworkPolicy", namespace: "pay", name: "default.deny", rule: 0 },
    });
    expect(changed[0]?.decidedBy).not.toHaveProperty("rule");
  });

  it("needs the right to make the change, and the sentence names it and not whether the object is there", async () => {
    const forbidden = (user: string, namespace: string, spec: FlowPreviewSpec) => refusal(user, namespace, spec);
    for (const name of ["ledger", "nothing"])
      expect(await forbidden("writer", "pay", { delete: [{ ...ledgerPolicy, name }] })).toEqual([
        403,
        `networkpolicies.networking.k8s.io "${name}" is forbidden: User "writer" cannot delete resource "networkpolicies" in API group "networking.k8s.io" in the namespace "pay", and a preview of it takes that right`,
      ]);
    const update = await forbidden("writer", "pay", { objects: [kubernetesPolicy("ledger", { podSelector: {} })] });
    expect(update).toEqual([403, expect.stringContaining('cannot update resource "networkpolicies"')]);
    const elsewhere = kubernetesPolicy("deny-all", { podSelector: {} }, "shop");
    expect(await forbidden("paul", "pay", { objects: [elsewhere] })).toEqual([
      403,
      expect.stringContaining(
        'cannot create resource "networkpolicies" in API group "networking.k8s.io" in the namespace "shop"',
      ),
    ]);
    const global = v3("GlobalNetworkPolicy", { name: "deny" }, { selector: "all()" });
    expect(await forbidden("paul", "pay", { objects: [global] })).toEqual([
      403,
      expect.stringContaining(
        'cannot create resource "globalnetworkpolicies" in API group "vendor.io" at the cluster scope',
      ),
    ]);
    const inTier = v3("NetworkPolicy", { name: "front.web", namespace: "pay" }, { tier: "front", selector: "all()" });
    expect(await forbidden("paul", "pay", { objects: [inTier] })).toEqual([
      403,
      expect.stringContaining('cannot create policies of tier "front"'),
    ]);
  });

  it("needs the right to list the flows, and to preview", async () => {
    expect((await post("fred", "pay", { objects: [denyAll] })).body.message).toContain('cannot list resource "flows"');
    expect((await post("vera", "pay", { objects: [denyAll] })).status).toBe(403);
    expect((await post("vera", "shop", { objects: [denyAll] })).body.message).toContain('cannot list resource "flows"');
    expect((await post("paul", "", { objects: [denyAll] })).status).toBe(403);
  });
});

describe("what is refused", () => {
  it("of objects is what the API server refuses, in its words", async () => {
    const bad = v3(
      "NetworkPolicy",
      { name: "bad", namespace: "pay" },
      { selector: "app ==", ingress: [{ action: "Allow" }] },
    );
    const [code, text] = await refusal("root", "pay", { objects: [bad] });
    expect([code, text]).toEqual([
      422,
      expect.stringMatching(/^NetworkPolicy\.vendor\.io "bad" is invalid: spec\.selector: /),
    ]);
    const noPeer = kubernetesPolicy("bad", { podSelector: {}, ingress: [{ from: [{}] }] });
    expect(await refusal("root", "pay", { objects: [noPeer] })).toEqual([
      422,
      expect.stringContaining("spec.ingress[0].from[0]: Required value: must specify a peer"),
    ]);
    const unknown = kubernetesPolicy("bad", { podSelector: {}, ingres: [] });
    expect(await refusal("root", "pay", { objects: [unknown] })).toEqual([
      400,
      expect.stringContaining('strict decoding error: unknown field "spec.ingres"'),
    ]);
    const noTier = v3("NetworkPolicy", { name: "rear.web", namespace: "pay" }, { tier: "rear", selector: "all()" });
    expect(await refusal("root", "pay", { objects: [noTier] })).toEqual([
      422,
      expect.stringContaining('spec.tier: Not found: "rear"'),
    ]);
    const tier = { apiVersion: "vendor.io/v3", kind: "Tier", name: "front" };
    expect(await refusal("root", "", { delete: [tier] })).toEqual([409, expect.stringContaining("still has policies")]);
    expect(await refusal("root", "", { delete: [{ ...ledgerPolicy, name: "nothing" }] })).toEqual([
      404,
      'networkpolicies.networking.k8s.io "nothing" not found',
    ]);
  });

  it("of a preview is said in one sentence with a code", async () => {
    const many = Array.from({ length: 51 }, (_, index) => kubernetesPolicy(`p${index}`, { podSelector: {} }));
    for (const [spec, why] of [
      [{ objects: many }, "a preview has at most 50 objects, and this one has 51"],
      [{}, "there is nothing to preview: spec.objects and spec.delete are empty"],
      [{ objects: [denyAll, denyAll] }, "NetworkPolicy pay/deny-all is in the preview twice"],
      [
        { objects: [{ apiVersion: "v1", kind: "Pod", metadata: { name: "x" } }] },
        "Pod in v1 is nothing that a preview takes",
      ],
      [{ objects: [{ metadata: [] }] }, "spec.objects[0] has no apiVersion, kind or metadata.name"],
      [{ flows: 3 }, "spec.flows is no field"],
    ] as const) {
      const [code, text] = await refusal("root", "pay", spec);
      expect([code, text]).toEqual([400, expect.stringContaining(why)]);
      expect(text).toContain("[FLOW_PREVIEW_BAD]");
    }
    expect(await refusal("root", "pay", { objects: [denyAll], query: "port:x" })).toEqual([
      400,
      expect.stringContaining("port"),
    ]);
    const large = kubernetesPolicy("large", { podSelector: {} });
    const annotations = { note: "x".repeat(256 * 1024) };
    const [code] = await refusal("root", "pay", {
      objects: [{ ...large, metadata: { ...large.metadata, annotations } }],
    });
    expect(code).toBe(413);
    const { status } = await flows.ask(`${V1}/previews`, { token: flows.tokenOf("root") });
    expect(status).toBe(405);
  });

  it("is a second preview of one user at a time", async () => {
    const asked = await Promise.all(Array.from({ length: 4 }, () => post("root", "", { objects: [denyAll] })));
    const codes = asked.map(({ status }) => status);
    expect(codes).toContain(201);
    for (const { status, body } of asked)
      if (status !== 201)
        expect([status, body.message]).toEqual([429, expect.stringContaining("[FLOW_PREVIEWS_FULL]")]);
  });
});

describe("vendorctl flows preview", () => {
  const text = JSON.stringify(denyAll);

  it("prints what would change, and one sentence about all", async () => {
    tool = inProcessVendorctl(flows.kubeconfig(flows.tokenOf("root")));
    const { exit, out, err } = await tool.run("flows", "preview", "-f", tool.file("deny.json", text), "-A");
    expect([exit, err]).toEqual([0, expect.stringContaining("note: 1 pair could not be asked: shop/gone has no pods")]);
    const [head, first, second, ...rest] = out.trimEnd().split("\n");
    expect(head?.split(/ {2,}/)).toEqual([
      ...["NOW", "THEN", "FROM", "TO", "PORT", "CONNECTIONS", "BYTES", "DECIDED-BY"],
    ]);
    expect(first?.split(/ {2,}/).slice(0, 6)).toEqual(["allow", "deny", "shop/web", "pay/db", "5432/TCP", "60"]);
    expect(first).toContain("end of tier default");
    expect(second).toContain("public");
    expect(rest).toEqual(["", "2 of 5 pairs would change: 2 allowed would be denied"]);
  });

  it("reads several files and standard input, deletes by name, and takes a query", async () => {
    tool ??= inProcessVendorctl(flows.kubeconfig(flows.tokenOf("root")));
    const out = await tool.ok(
      ...["flows", "preview", "-n", "pay", "-f", tool.file("deny.json", text)],
      ...["--delete", "networkpolicy.networking.k8s.io/ledger", "to:pay/ledger", "port:443", "-o", "json"],
    );
    const { spec, status } = JSON.parse(out) as FlowPreview;
    expect(spec).toMatchObject({ query: "to:pay/ledger port:443", delete: [ledgerPolicy] });
    expect(told(status)).toEqual(["Allow to Deny: web ledger 443"]);
  });

  it("says that nothing would change, and of which time", async () => {
    tool ??= inProcessVendorctl(flows.kubeconfig(flows.tokenOf("root")));
    const out = await tool.ok("flows", "preview", "-f", tool.file("deny.json", text), "-A", "port:443");
    expect(out).toBe("nothing would change in 1 pair of the last hour\n");
  });

  it("names the file, the line and the object of a mistake", async () => {
    tool ??= inProcessVendorctl(flows.kubeconfig(flows.tokenOf("root")));
    const yaml = tool.file("bad.yaml", "apiVersion: vendor.io/v3\nkind: NetworkPolicy\nmetadata: {name: a\n");
    const unreadable = await tool.run("flows", "preview", "-f", yaml);
    expect(unreadable.exit).not.toBe(0);
    expect(unreadable.err).toMatch(/bad\.yaml.*line \d+.*\[RESOURCE_FILE_BAD\]/);
    const bad = {
      ...denyAll,
      metadata: { name: "bad", namespace: "pay" },
      spec: { podSelector: {}, ingress: [{ from: [{}] }] },
    };
    const refused = await tool.run("flows", "preview", "-f", tool.file("refused.json", JSON.stringify(bad)), "-A");
    expect(refused.exit).not.toBe(0);
    expect(refused.err).toContain('refused.json: NetworkPolicy.networking.k8s.io "bad" is invalid: spec.ingress[0]');
  });
});
