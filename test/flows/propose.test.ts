import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import type { FlowEnd, FlowKey } from "../../src/api/protocol/flow.ts";
import type { FlowProposal } from "../../src/api/protocol/flow-proposal.ts";
import { createClient } from "../../src/cluster/client.ts";
import { askNodes, packetOf } from "../../src/flows/explain/ask-nodes.ts";
import { type ClusterObjects, clusterObjects } from "../../src/flows/explain/cluster-objects.ts";
import { flowPlaces } from "../../src/flows/explain/flow-places.ts";
import { flowBatch, flowKey, flowRow, outside, policyHit } from "../../src/flows/flow.fixture.ts";
import { fakeClock } from "../../src/kit/fake-clock.ts";
import { type FlowsApi, startFlowsApi } from "../support/flows-api.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";

/** Ten applications that speak to each other. ana has `view` in shop, both in shop and ops, and the auditor everywhere. */

const V1 = "/apis/flows.vendor.io/v1";
const CLIENTS = ["203.0.113.4", "203.0.113.5"];

interface App {
  namespace: string;
  name: string;
  labels: Record<string, string>;
  address: string;
  node: string;
}

const app = (namespace: string, name: string, index: number, labels: object = { app: name }): App => ({
  ...{ namespace, name, labels: labels as Record<string, string> },
  ...{ address: `10.244.${1 + (index % 2)}.${10 + index}`, node: `node-${1 + (index % 2)}` },
});

const APPS: App[] = [
  app("shop", "web", 0, { app: "shop", component: "web" }),
  app("shop", "api", 1, { app: "shop", component: "api" }),
  app("shop", "worker", 2, { app: "shop", component: "worker" }),
  app("shop", "cache", 3, { "app.kubernetes.io/name": "redis", "app.kubernetes.io/version": "7" }),
  app("shop", "queue", 4, { "app.kubernetes.io/name": "rabbitmq" }),
  app("shop", "db", 5, { app: "db", "secret-shop": "yes-it-is" }),
  app("pay", "ledger", 6, { app: "ledger", "secret-pay": "yes-it-is" }),
  app("ops", "prometheus", 7, { "app.kubernetes.io/name": "prometheus" }),
  app("ops", "grafana", 8, { "app.kubernetes.io/name": "grafana" }),
  app("kube-system", "coredns", 9, { "k8s-app": "kube-dns" }),
];

/** Port, protocol and connections. */
const TRAFFIC: [from: string, to: string, port: number, protocol: string, connections: number][] = [
  ["web", "api", 8080, "TCP", 40],
  ["worker", "api", 8080, "TCP", 10],
  ["api", "db", 5432, "TCP", 20],
  ["worker", "db", 5432, "TCP", 5],
  ["api", "cache", 6379, "TCP", 60],
  ["api", "queue", 5672, "TCP", 7],
  ["worker", "queue", 5672, "TCP", 8],
  ["api", "ledger", 443, "TCP", 3],
  ["grafana", "prometheus", 9090, "TCP", 2],
  ...["web", "api", "worker", "cache", "queue", "ledger"].map((name): [string, string, number, string, number] => [
    "prometheus",
    name,
    9100,
    "TCP",
    4,
  ]),
  ...["web", "api", "worker"].map((name): [string, string, number, string, number] => [name, "coredns", 53, "UDP", 9]),
];

let flows: FlowsApi;
let tool: InProcessVendorctl | undefined;
let intervals = 0;

beforeAll(async () => {
  flows = await startFlowsApi(["ana", "both", "auditor", "nobody"]);
  await put("/api/v1/namespaces", { metadata: { name: "ops" } });
  for (const [user, namespace] of [
    ["ana", "shop"],
    ["both", "shop"],
    ["both", "ops"],
  ] as const)
    await flows.bind(user, "view", namespace);
  await flows.bind("auditor", "view");
  for (const name of ["node-1", "node-2"])
    await put("/api/v1/nodes", {
      metadata: { name },
      status: { addresses: [{ type: "InternalIP", address: `172.16.0.${name.slice(-1)}` }] },
    });
  for (const one of APPS) await createPod(one);
  await put("/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", {
    metadata: { name: "kube-dns-1", namespace: "kube-system", labels: { "kubernetes.io/service-name": "kube-dns" } },
    addressType: "IPv4",
    ports: [
      { name: "dns", port: 53, protocol: "UDP" },
      { name: "dns-tcp", port: 53, protocol: "TCP" },
      { name: "metrics", port: 9153, protocol: "TCP" },
    ],
    endpoints: [
      {
        addresses: [byName("coredns").address],
        targetRef: { kind: "Pod", name: podName("coredns"), namespace: "kube-system" },
      },
    ],
  });
  const rows = TRAFFIC.map(([from, to, port, protocol, started]) => ({
    key: allowed(from, to, port, protocol),
    started,
  }));
  await count(rows);
  const client = { type: outside.type, namespace: "", name: "public" } as const;
  await count([{ key: { ...allowed("web", "web", 443, "TCP"), from: client }, started: 30, sourceAddresses: CLIENTS }]);
  await count([
    {
      key: { ...allowed("web", "db", 5432, "TCP"), verdict: "Deny", policies: [policyHit({ namespace: "shop" })] },
      started: 0,
    },
    {
      key: { ...allowed("web", "web", 8081, "TCP"), from: { type: "Node", namespace: "", name: "node-1" } },
      started: 100,
      sourceAddresses: ["172.16.0.1"],
    },
  ]);
});
afterAll(async () => {
  tool?.close();
  await flows?.close();
});

const byName = (name: string) => APPS.find((one) => one.name === name)!;
const podName = (name: string) => `${name}-5d8f9c7b6d-x2x`;
const endOf = ({ namespace, name, labels }: App): FlowEnd => ({
  type: "Workload",
  namespace,
  name,
  kind: "Deployment",
  labels,
});

function allowed(from: string, to: string, port: number, protocol: string): FlowKey {
  const { service: _, reason: __, ...key } = flowKey({ port, protocol, verdict: "Allow", policies: [] });
  return { ...key, from: endOf(byName(from)), to: endOf(byName(to)) };
}

/** As agents of both ends count it. */
async function count(rows: readonly { key: FlowKey; started: number; sourceAddresses?: string[] }[]): Promise<void> {
  const nodeOf = ({ namespace, name }: FlowEnd) =>
    APPS.find((one) => one.namespace === namespace && one.name === name)?.node;
  for (const node of ["node-1", "node-2"]) {
    const counted = rows.flatMap(({ key, started, sourceAddresses }) => {
      const [from, to] = [nodeOf(key.from), nodeOf(key.to)];
      const reporter =
        from === to || (key.from.type === "Node" && key.from.name === to)
          ? "Both"
          : from === node
            ? "Source"
            : "Destination";
      if (from !== node && to !== node) return [];
      if (key.verdict === "Deny" && to !== node) return [];
      return [flowRow({ ...key, reporter, node }, { started, ...(sourceAddresses && { sourceAddresses }) })];
    });
    if (counted.length > 0) await flows.send(flowBatch(counted, { node, interval: ++intervals, until: Date.now() }));
  }
}

async function send(method: "POST" | "PATCH", path: string, body: object): Promise<void> {
  const headers = { "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json" };
  const response = await flows.api.server.transport().request({ method, path, headers, body: JSON.stringify(body) });
  if (response.status >= 300) throw new Error(`${path}: ${await response.text()}`);
}

const put = (path: string, object: object) => send("POST", path, object);

async function createPod({ namespace, name, labels, address, node }: App): Promise<void> {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: `${name}-5d8f9c7b6d`, uid: name, controller: true };
  await put(`/api/v1/namespaces/${namespace}/pods`, {
    metadata: {
      ...{ name: podName(name), namespace, ownerReferences: [owner] },
      labels: { ...labels, "pod-template-hash": "5d8f9c7b6d" },
    },
    spec: { nodeName: node, containers: [{ name: "main", image: "main" }] },
  });
  const status = { status: { phase: "Running", podIP: address, podIPs: [{ ip: address }] } };
  await send("PATCH", `/api/v1/namespaces/${namespace}/pods/${podName(name)}/status`, status);
}

async function propose(user: string, namespace: string, asked: Record<string, string> = {}): Promise<FlowProposal> {
  const base = namespace === "" ? V1 : `${V1}/namespaces/${namespace}`;
  const { status, body } = await flows.ask(`${base}/proposals?${new URLSearchParams(asked)}`, {
    token: flows.tokenOf(user),
  });
  expect(status, JSON.stringify(body)).toBe(200);
  return body as FlowProposal;
}

/** The cluster with these policies, and a default deny in each namespace. */
async function clusterWith({ policies }: FlowProposal, denied: readonly string[]): Promise<ClusterObjects> {
  const client = createClient(flows.api.server.transport(), { userAgent: "test" });
  const objects = new Map(await clusterObjects(client, fakeClock())());
  const kubernetes: KubeObject[] = [];
  const ours: KubeObject[] = [];
  for (const namespace of new Set(APPS.map((one) => one.namespace)))
    kubernetes.push({
      ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name: "deny", namespace } },
      spec: { podSelector: {}, policyTypes: denied },
    } as unknown as KubeObject);
  for (const { object } of policies) {
    if (object.apiVersion.startsWith("networking.")) kubernetes.push(object);
    else
      ours.push({
        ...object,
        apiVersion: `${vendorNames.groups.stored.group}/v1`,
        metadata: { ...object.metadata, name: `default.${object.metadata.name}` },
      });
  }
  objects.set("kubernetesPolicies", kubernetes);
  objects.set("networkPolicies", ours);
  return objects;
}

function isAllowed(objects: ClusterObjects, key: FlowKey, sources: readonly string[] = []): boolean {
  const places = flowPlaces(key, { sources, destinations: [] }, objects);
  if ("unknown" in places) throw new Error(`no place of ${places.unknown}`);
  const packet = packetOf(key, places.from, places.to)!;
  return askNodes(objects, packet, places.from, places.to).every(({ verdict }) => verdict === "Allow");
}

const PORTS = [...new Set([...TRAFFIC.map(([, , port]) => port), 443, 22])];

describe("the policies that are proposed for ten applications", () => {
  it.each([
    ["kubernetes", "false"],
    ["kubernetes", "true"],
    ["vendor", "true"],
  ])("allow all of their traffic and nothing else: %s, egress %s", async (kind, egress) => {
    const proposal = await propose("auditor", "", { kind, egress, addresses: "true" });
    const objects = await clusterWith(proposal, egress === "true" ? ["Ingress", "Egress"] : ["Ingress"]);
    const seen = new Set(TRAFFIC.map(([from, to, port, protocol]) => `${from} ${to} ${protocol} ${port}`));
    const wrong: string[] = [];
    for (const from of APPS) {
      for (const to of APPS) {
        if (from === to) continue;
        for (const port of PORTS) {
          for (const protocol of port === 53 ? ["TCP", "UDP"] : ["TCP"]) {
            const text = `${from.name} ${to.name} ${protocol} ${port}`;
            // DNS goes on by TCP where answers are long; that it reaches the resolver is for the resolver's own rules.
            const isSeen = seen.has(text);
            if (isAllowed(objects, allowed(from.name, to.name, port, protocol)) !== isSeen)
              wrong.push(`${text} is ${isSeen ? "denied" : "allowed"}`);
          }
        }
      }
    }
    expect(wrong).toEqual([]);
    const fromOutside = { ...allowed("web", "web", 443, "TCP"), from: outside };
    expect(isAllowed(objects, fromOutside, [CLIENTS[0]!])).toBe(true);
    expect(isAllowed(objects, fromOutside, ["203.0.113.6"])).toBe(false);
  });

  it("rest on so many connections each, and say what no rule was made for", async () => {
    const { policies, left } = await propose("auditor", "");
    const rules = policies.flatMap(({ object, rules }) =>
      rules.map(
        ({ path, text, connections }) =>
          `${object.metadata.namespace}/${object.metadata.name} ${path} ${text}: ${connections}`,
      ),
    );
    expect(rules).toContain("shop/api-proposed spec.ingress[0] from web, worker on TCP 8080: 50");
    expect(rules).toContain("shop/db-proposed spec.ingress[0] from api, worker on TCP 5432: 25");
    expect(rules).toContain(
      "kube-system/coredns-proposed spec.ingress[0] from shop/api, shop/web, shop/worker on UDP 53: 27",
    );
    expect(left.map(({ what, why }) => `${what}: ${why}`).sort()).toEqual([
      "a public address to shop/web on TCP port 443: an outside address: ask for addresses",
      "node node-1 to shop/web on TCP port 8081: a node reaches its own pods whatever policy says: kubelet probes need no rule",
      "shop/web to shop/db on TCP port 5432: it was denied: ask with verdict:deny to allow it",
    ]);
  });

  it("are made of denied flows, if the query asks for them", async () => {
    const { policies, left, notes } = await propose("auditor", "", { query: "verdict:deny" });
    expect(policies.map(({ object }) => object.metadata.name)).toEqual(["db-proposed"]);
    expect(policies[0]?.rules).toMatchObject([{ connections: 0, flows: 1, text: "from web on TCP 5432" }]);
    expect(left).toEqual([]);
    expect(notes).toContain("Only flows that the query selects are allowed.");
  });
});

describe("a reader of one namespace", () => {
  it("gets policies of that namespace, and no labels of others", async () => {
    const proposal = await propose("ana", "shop", { egress: "true" });
    expect(new Set(proposal.policies.map(({ object }) => object.metadata.namespace))).toEqual(new Set(["shop"]));
    expect(JSON.stringify(proposal)).not.toMatch(
      /secret-pay|app.kubernetes.io\/name":"prometheus|k8s-app|10\.244|203\.0/,
    );
    const cache = proposal.policies.find(({ object }) => object.metadata.name === "cache-proposed");
    expect(cache?.object["spec"]).toMatchObject({
      ingress: [
        { from: [{ podSelector: { matchLabels: { component: "api" } } }] },
        { from: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "ops" } } }] },
      ],
    });
    expect(JSON.stringify(cache)).not.toContain('"podSelector":{}');
    expect(proposal.notes).toContain(
      "Rules for kube-system, ops, pay are for all pods there: labels are shown to who may list flows of a namespace.",
    );
  });

  it("gets labels of other namespaces whose flows it may list", async () => {
    const proposal = await propose("both", "shop");
    expect(JSON.stringify(proposal)).toContain('"app.kubernetes.io/name":"prometheus"');
  });

  it("is refused all other namespaces", async () => {
    for (const path of [`${V1}/namespaces/pay/proposals`, `${V1}/proposals`])
      expect((await flows.ask(path, { token: flows.tokenOf("ana") })).status).toBe(403);
    expect((await flows.ask(`${V1}/namespaces/shop/proposals`, { token: flows.tokenOf("nobody") })).status).toBe(403);
  });

  it("is told in one sentence what cannot be asked", async () => {
    const { status, body } = await flows.ask(`${V1}/namespaces/shop/proposals?kind=other`, {
      token: flows.tokenOf("ana"),
    });
    expect([status, body.message]).toEqual([400, 'kind is "other", which is none of kubernetes, vendor']);
  });
});

describe("vendorctl flows propose", () => {
  it("prints documents for kubectl apply, with a comment over each rule, and the rest on stderr", async () => {
    tool = inProcessVendorctl(flows.kubeconfig(flows.tokenOf("auditor")));
    const { exit, out, err } = await tool.run(
      "flows",
      "propose",
      "-n",
      "shop",
      "--egress",
      "from:shop/worker",
      "or",
      "to:shop/worker",
    );
    expect(exit, err).toBe(0);
    const documents = parseAllDocuments(out).map((one) => one.toJS());
    expect(documents.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toContain(
      "NetworkPolicy worker-proposed",
    );
    const worker = out.split("---\n").find((text) => text.includes("name: worker-proposed")) ?? "";
    expect(worker.replace(/, \d+ bytes, \S+Z to \S+Z/g, ", BYTES, TIMES")).toBe(`apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: worker-proposed
  namespace: shop
spec:
  podSelector:
    matchLabels:
      component: worker
  policyTypes:
    - Ingress
    - Egress
  ingress:
    # from ops/prometheus on TCP 9100: 4 connections, BYTES, TIMES
    - from:
        - namespaceSelector:
            matchLabels:
              kubernetes.io/metadata.name: ops
          podSelector:
            matchLabels:
              app.kubernetes.io/name: prometheus
      ports:
        - protocol: TCP
          port: 9100
  egress:
    # DNS to kube-system/coredns on TCP 53, UDP 53: 9 connections, BYTES, TIMES
    - to:
        - namespaceSelector:
            matchLabels:
              kubernetes.io/metadata.name: kube-system
          podSelector:
            matchLabels:
              k8s-app: kube-dns
      ports:
        - protocol: TCP
          port: 53
        - protocol: UDP
          port: 53
    # to db on TCP 5432: 5 connections, BYTES, TIMES
    - to:
        - podSelector:
            matchLabels:
              app: db
      ports:
        - protocol: TCP
          port: 5432
    # to queue on TCP 5672: 8 connections, BYTES, TIMES
    - to:
        - podSelector:
            matchLabels:
              app.kubernetes.io/name: rabbitmq
      ports:
        - protocol: TCP
          port: 5672
    # to api on TCP 8080: 10 connections, BYTES, TIMES
    - to:
        - podSelector:
            matchLabels:
              component: api
      ports:
        - protocol: TCP
          port: 8080
`);
    expect(err).toContain("note: Only flows that the query selects are allowed.");
  });

  it("prints them as a table or JSON too, and says which policies are there already", async () => {
    tool ??= inProcessVendorctl(flows.kubeconfig(flows.tokenOf("auditor")));
    const table = await tool.ok("flows", "propose", "-n", "shop", "-o", "table");
    expect(table).toMatch(/^NAMESPACE +POLICY +RULE +ALLOWS +CONNECTIONS/);
    expect(table).toMatch(/shop +cache-proposed +ingress\[0\] +from api on TCP 6379 +60/);
    expect(JSON.parse(await tool.ok("flows", "propose", "-n", "shop", "-o", "json"))).toMatchObject({
      kind: "FlowProposal",
    });
    const { policies } = await propose("auditor", "shop");
    await put("/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies", policies[0]!.object);
    const saysSo = async () => (await tool!.run("flows", "propose", "-n", "shop")).err;
    // Objects are looked at again after some seconds.
    await expect
      .poll(saysSo, { timeout: 15_000, interval: 250 })
      .toContain(`NetworkPolicy shop/${policies[0]?.object.metadata.name} exists: kubectl apply replaces its rules.`);
  });
});
