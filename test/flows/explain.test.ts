import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { FlowKey } from "../../src/api/protocol/flow.ts";
import type { FlowExplanation } from "../../src/api/protocol/flow-explanation.ts";
import type { Transport } from "../../src/api/transport.ts";
import { createClient } from "../../src/cluster/client.ts";
import { clusterObjects } from "../../src/flows/explain/cluster-objects.ts";
import { flowBatch, flowRow, outside, policyHit, workload } from "../../src/flows/flow.fixture.ts";
import { fakeClock } from "../../src/kit/fake-clock.ts";
import { type FlowsApi, startFlowsApi } from "../support/flows-api.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { findKubectls, openKubectl } from "../support/kubectl.ts";

/** Why flows were denied or allowed: paul has Kubernetes' `view` in the namespace pay, fred may only list flows there, and the auditor has `view` everywhere. */

const V1 = "/apis/flows.vendor.io/v1";
const STORED = "/apis/crd.vendor.io/v1";
const KUBERNETES = "/apis/networking.k8s.io/v1/namespaces";
/** In labels, names and addresses of the namespace shop, which nobody of pay may see. */
const SECRET = /secret-\w+|10\.244\.1\.\d/;

let flows: FlowsApi;
let tool: InProcessVendorctl | undefined;
beforeAll(async () => {
  flows = await startFlowsApi(["paul", "fred", "auditor"]);
  await flows.bind("paul", "view", "pay");
  await flows.bind("auditor", "view");
  await put("/apis/rbac.authorization.k8s.io/v1/clusterroles", {
    metadata: { name: "flows-only" },
    rules: [{ apiGroups: ["flows.vendor.io"], resources: ["flows", "flows/explain"], verbs: ["get", "list"] }],
  });
  await flows.bind("fred", "flows-only", "pay");
  for (const [index, name] of ["node-1", "node-2"].entries())
    await put("/api/v1/nodes", {
      metadata: { name },
      status: { addresses: [{ type: "InternalIP", address: `172.16.0.${index + 1}` }] },
    });
  await pod("shop", "web", "node-1", "10.244.1.7", { app: "web", "secret-label": "secret-value" });
  await pod("shop", "cart", "node-1", "10.244.1.8");
  await pod("pay", "db", "node-2", "10.244.2.9");
  await pod("pay", "ledger", "node-2", "10.244.2.10");
  await put(`${KUBERNETES}/pay/networkpolicies`, {
    metadata: { name: "db", namespace: "pay" },
    spec: {
      podSelector: { matchLabels: { app: "db" } },
      policyTypes: ["Ingress"],
      ingress: [
        { from: [{ podSelector: {} }] },
        {
          from: [{ namespaceSelector: {}, podSelector: { matchLabels: { app: "web" } } }],
          ports: [{ protocol: "TCP", port: 8080 }],
        },
      ],
    },
  });
  await put(`${STORED}/namespaces/pay/networkpolicies`, {
    metadata: { name: "default.ledger", namespace: "pay" },
    spec: {
      ...{ tier: "default", order: 10, selector: 'app == "ledger"', types: ["Ingress"] },
      ingress: [
        { action: "Deny", protocol: "TCP", destination: { ports: [5432] } },
        { action: "Allow", protocol: "TCP", destination: { ports: [443] } },
      ],
    },
  });
  await put("/api/v1/namespaces", { metadata: { name: "lab" } });
  await pod("lab", "job", "node-1", "10.244.3.1");
  await put(`${STORED}/tiers`, { metadata: { name: "lab" }, spec: { order: 20, defaultAction: "Deny" } });
  await put(`${STORED}/namespaces/lab/networkpolicies`, {
    metadata: { name: "lab.web-only", namespace: "lab" },
    spec: {
      ...{ tier: "lab", selector: 'app == "job"', types: ["Egress"] },
      egress: [{ action: "Allow", protocol: "TCP", destination: { ports: [80] } }],
    },
  });
  await put(`${STORED}/tiers`, { metadata: { name: "front" }, spec: { order: 10, defaultAction: "Deny" } });
  await put(`${STORED}/globalnetworkpolicies`, {
    metadata: { name: "front.secret-policy" },
    spec: { tier: "front", selector: 'app == "db"', types: ["Ingress"], ingress: [{ action: "Pass" }] },
  });
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
  const metadata = { name: `${app}-5d8f-x2x`, namespace, labels: { ...labels, "pod-template-hash": "5d8f" } };
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: `${app}-5d8f`, uid: `uid-${app}`, controller: true };
  await put(`/api/v1/namespaces/${namespace}/pods`, {
    metadata: { ...metadata, ownerReferences: [owner] },
    spec: { nodeName, containers: [{ name: "main", image: "main" }] },
  });
  const status = { status: { phase: "Running", podIP: ip, podIPs: [{ ip }] } };
  await send("PATCH", `/api/v1/namespaces/${namespace}/pods/${metadata.name}/status`, status);
}

let intervals = 0;
/** Of a flow that an agent has counted, for one user in one namespace or in the whole cluster. */
async function explain(user: string, namespace: string, key: Partial<FlowKey>): Promise<FlowExplanation> {
  const { status, body } = await flows.ask(await explainPath(user, namespace, key), { token: flows.tokenOf(user) });
  expect(status, JSON.stringify(body)).toBe(200);
  return body as FlowExplanation;
}

async function explainPath(user: string, namespace: string, key: Partial<FlowKey>): Promise<string> {
  // Each has a port of its own where it matters, so that it is found again.
  const row = flowRow({ from: workload("shop", "web", { app: "web", "secret-label": "secret-value" }), ...key });
  await flows.send(flowBatch([row], { node: row.key.node, interval: ++intervals, until: Date.now() }));
  const base = namespace === "" ? V1 : `${V1}/namespaces/${namespace}`;
  const { from, to, port, verdict } = row.key;
  const query = `from:${from.name} to:${to.name} port:${port} verdict:${verdict.toLowerCase()}`;
  const list = await flows.ask(`${base}/flows?query=${encodeURIComponent(query)}`, { token: flows.tokenOf(user) });
  expect(list.body.items, JSON.stringify(list.body)).toHaveLength(1);
  return `${base}/flows/${list.body.items[0].metadata.name}/explain`;
}

const endOfDefault = policyHit({ kind: "EndOfTier", tier: "default", namespace: "", name: "", action: "Deny" });
const { rule: _, ...END } = endOfDefault;

describe("a flow that the end of a tier denies", () => {
  it("says so in one sentence, and names the rule that nearly allows it, with its line", async () => {
    const told = await explain("auditor", "", { policies: [END] });
    expect(told.sentence).toBe("Denied: no policy in tier default allows shop/web to pay/db on TCP port 5432.");
    expect(told).toMatchObject({ kind: "FlowExplanation", changed: false });
    // Nobody but administrators may get policies of the tier front.
    expect(told.notes).toEqual(["Some policies are left out, because you may not get them."]);
    expect(told.now).toMatchObject({
      verdict: "Deny",
      policies: [
        { direction: "Ingress", kind: "GlobalNetworkPolicy", tier: "front", name: "", action: "Pass" },
        { direction: "Ingress", kind: "EndOfTier", tier: "default" },
      ],
    });
    expect(told.packet).toEqual({ protocol: "TCP", port: 5432, source: "10.244.1.7", destination: "10.244.2.9" });
    const [ingress] = told.ends.filter(({ direction }) => direction === "Ingress");
    expect(ingress).toMatchObject({ pod: "pay/db-5d8f-x2x", node: "node-2", verdict: "Deny" });
    const [miss] = told.nearMisses;
    expect(miss?.text).toBe("ingress[1] of Kubernetes NetworkPolicy pay/db allows port 8080; this is 5432");
    expect(miss?.criteria).toEqual([{ name: "dstPorts", wanted: "8080", found: "5432" }]);
    expect(miss?.rule).toMatchObject({ path: "spec.ingress[1]", rule: 1, line: expect.any(Number) });
    expect(miss?.rule.yaml).toContain("- from:\n  - namespaceSelector: {}");
    expect(told.remedies[0]?.text).toBe("Add port 5432 to the ports of ingress[1] of Kubernetes NetworkPolicy pay/db.");
    const rule = told.remedies.at(-1);
    expect(rule?.text).toBe("Add this ingress rule to Kubernetes NetworkPolicy pay/db.");
    expect(rule?.yaml).toContain("kubernetes.io/metadata.name: shop");
    expect(rule?.yaml).not.toContain("pod-template-hash");
  });
});

describe("the line of a rule", () => {
  const kubectls = findKubectls();
  if (kubectls.length === 0) it("kubectl", ({ skip }) => skip("needs kubectl"));
  it.each(kubectls.slice(-1))("is the one that kubectl $version prints it on", async (program) => {
    const told = await explain("auditor", "", { port: 5440, policies: [END] });
    const kubectl = openKubectl(program, flows.kubeconfig(flows.tokenOf("auditor")));
    try {
      const text = await kubectl.ok("get", "networkpolicies.networking.k8s.io", "-n", "pay", "db", "-o", "yaml");
      const { line = 0, yaml = "" } = told.nearMisses[0]?.rule ?? {};
      const printed = text.split("\n").slice(line - 1, line - 1 + yaml.split("\n").length);
      expect(printed.map((one) => one.slice(2)).join("\n")).toBe(yaml);
    } finally {
      kubectl.close();
    }
  });
});

describe("a flow that a rule denies", () => {
  it("names the rule, its line and its text, and where another would have to be", async () => {
    const told = await explain("auditor", "", {
      to: workload("pay", "ledger"),
      policies: [policyHit({ name: "default.ledger", rule: 0 })],
    });
    expect(told.sentence).toBe(
      "Denied by ingress[0] of NetworkPolicy pay/ledger: shop/web to pay/ledger on TCP port 5432.",
    );
    const decider = told.ends.at(-1)?.decider;
    expect(decider).toMatchObject({ tier: "default", name: "default.ledger", rule: 0, path: "spec.ingress[0]" });
    expect(decider?.yaml).toBe("- action: Deny\n  destination:\n    ports:\n    - 5432\n  protocol: TCP");
    // What comes after it was not asked.
    expect(told.nearMisses).toEqual([]);
    expect(told.remedies[0]?.text).toContain("before ingress[0] of NetworkPolicy pay/ledger");
  });
});

describe("a flow that is denied where it leaves", () => {
  const key = { from: workload("lab", "job"), reporter: "Source", node: "node-1", policies: [] } as const;

  it("has a policy of its own as remedy where there is none to add a rule to, and what it meets where it arrives", async () => {
    const told = await explain("auditor", "", { ...key, port: 5460, reason: "policy_workload_egress" });
    expect(told.sentence).toBe("Denied: no policy in tier lab allows lab/job to pay/db on TCP port 5460 (egress).");
    expect(told.ends.map(({ direction, verdict }) => [direction, verdict])).toEqual([
      ["Egress", "Deny"],
      ["Ingress", "Deny"],
    ]);
    // Nobody but administrators may get policies of the tier lab.
    const policy = told.remedies.find(({ direction }) => direction === "Egress");
    expect(policy).toMatchObject({ kind: "AddPolicy", text: "Create this policy." });
    expect(policy?.yaml).toBe(
      `apiVersion: vendor.io/v3
kind: NetworkPolicy
metadata:
  name: lab.job-to-db
  namespace: lab
spec:
  egress:
  - action: Allow
    destination:
      namespaceSelector: vendor.io/name == "pay"
      ports:
      - 5460
      selector: app == "db"
    protocol: TCP
  selector: app == "job"
  tier: lab
  types:
  - Egress
`,
    );
  });

  it("may be allowed there and denied where it arrives, which is said of a flow that was counted where it left", async () => {
    const told = await explain("auditor", "", { ...key, to: workload("pay", "ledger"), port: 80, verdict: "Allow" });
    expect(told.sentence).toBe(
      "Allowed by a NetworkPolicy of tier lab that you may not read (egress): lab/job to pay/ledger on TCP port 80.",
    );
    expect(told.notes).toContain("It was counted at its other end alone: now it is denied where it arrives.");
  });
});

describe("a policy that is offered", () => {
  it("allows the flow once it is there", async () => {
    const key = {
      from: workload("lab", "job"),
      to: workload("pay", "ledger"),
      port: 5470,
      reporter: "Source",
    } as const;
    const { remedies } = await explain("auditor", "", {
      ...key,
      node: "node-1",
      policies: [],
      reason: "policy_workload_egress",
    });
    const { yaml = "" } = remedies.find(({ direction }) => direction === "Egress") ?? {};
    const { metadata, spec } = parse(yaml);
    await put(`${STORED}/namespaces/lab/networkpolicies`, { metadata, spec });
    // Objects are looked at again after some seconds.
    const path = await explainPath("auditor", "", { ...key, node: "node-1", verdict: "Allow", policies: [] });
    const verdictThere = async () => {
      const { body } = await flows.ask(path, { token: flows.tokenOf("auditor") });
      return (body as FlowExplanation).ends.find(({ direction }) => direction === "Egress")?.verdict;
    };
    await expect.poll(verdictThere, { timeout: 15_000, interval: 250 }).toBe("Allow");
  });
});

describe("a flow that is allowed", () => {
  it("names the rule, and offers no remedy", async () => {
    const told = await explain("auditor", "", {
      ...{ from: workload("pay", "ledger"), verdict: "Allow", port: 9000, reporter: "Both" },
      policies: [policyHit({ kind: "KubernetesNetworkPolicy", name: "db", rule: 0, action: "Allow" })],
    });
    expect(told.sentence).toBe(
      "Allowed by default, as no policy applies (egress) and ingress[0] of Kubernetes NetworkPolicy pay/db (ingress): pay/ledger to pay/db on TCP port 9000.",
    );
    expect(told).toMatchObject({ changed: false, nearMisses: [], remedies: [] });
  });
});

describe("a flow whose policy has changed since", () => {
  it("says what is now, and that it was otherwise", async () => {
    const told = await explain("auditor", "", { port: 8080, policies: [END] });
    expect(told).toMatchObject({ changed: true, recorded: { verdict: "Deny" }, now: { verdict: "Allow" } });
    expect(told.sentence).toMatch(
      /^Denied when it was counted\. The policies have changed since: now it is allowed by /,
    );
    expect(told.remedies).toEqual([]);
  });
});

describe("a flow of what is gone", () => {
  it("says what is known, and which end has no pods", async () => {
    const told = await explain("auditor", "", { from: workload("shop", "gone"), policies: [END] });
    expect(told.sentence).toBe(
      "Denied when it was counted by the end of tier default: shop/gone to pay/db on TCP port 5432.",
    );
    expect(told.notes[0]).toBe(
      "shop/gone has no pods with an address any more. What policy says now cannot be calculated.",
    );
    expect(told).toMatchObject({ changed: false, ends: [] });
    expect(told.now).toBeUndefined();
  });
});

describe("a flow that no policy dropped", () => {
  it("has the reason in words, and what to do", async () => {
    const told = await explain("auditor", "", { port: 9100, reason: "no_backend", policies: [] });
    expect(told.sentence).toBe(
      "Dropped: the Service has no ready backend (shop/web to pay/db on TCP port 9100). What to do: make a pod of the Service ready: kubectl get endpointslices.",
    );
    expect(told.changed).toBe(false);
  });

  it("is asked about with the address of a client outside", async () => {
    const told = await explain("paul", "pay", { from: outside, port: 9200, policies: [END] });
    expect(told.packet).toMatchObject({ source: "10.244.1.7", destination: "10.244.2.9" });
    expect(told.sentence).toContain("a public address to pay/db");
  });
});

describe("a reader of one namespace", () => {
  it("learns of policies that it may get, and nothing of the other end but its name", async () => {
    const told = await explain("paul", "pay", { port: 5433, policies: [END] });
    expect(told.sentence).toBe("Denied: no policy in tier default allows shop/web to pay/db on TCP port 5433.");
    expect(told.nearMisses.map(({ criteria }) => criteria[0]?.found)).toContain("5433");
    expect(told.ends.find(({ direction }) => direction === "Egress")).toEqual({
      ...{ direction: "Egress", steps: [], unknown: "shown to who may list flows of namespace shop" },
    });
    expect(told.packet).toEqual({ protocol: "TCP", port: 5433, destination: "10.244.2.9" });
    expect(JSON.stringify(told)).not.toMatch(SECRET);
    // The labels of shop/web are not paul's to see, so there is no rule that selects it.
    expect(told.remedies.map(({ kind }) => kind)).toEqual(["ChangeRule", "ChangeRule"]);
  });

  it("learns only kind, tier and action of policies that it may not get", async () => {
    for (const key of [
      { port: 5434, policies: [END] },
      { port: 5435, policies: [] },
    ]) {
      const told = await explain("fred", "pay", key);
      expect(told.nearMisses).toEqual([]);
      expect(JSON.stringify([told.ends, told.now, told.remedies])).not.toMatch(
        /yaml|"line"|"(?:default\.)?(?:db|ledger)"/,
      );
      const steps = told.ends.flatMap((end) => end.steps);
      expect(steps.map(({ tier, result, policies, hidden }) => [tier, result, policies, hidden])).toEqual([
        ["front", "Pass", [], true],
        ["default", "Deny", [], true],
      ]);
      expect(JSON.stringify(told)).not.toMatch(SECRET);
      expect(told.notes).toContain("Some policies are left out, because you may not get them.");
    }
  });

  it("does not learn whether a flow of others exists", async () => {
    const path = await explainPath("auditor", "", { to: workload("shop", "cart"), port: 9300, policies: [] });
    const id = path.split("/").at(-2)!;
    for (const [user, base, code] of [
      ["paul", `${V1}/namespaces/pay`, 404],
      ["paul", `${V1}/namespaces/shop`, 403],
      ["paul", V1, 403],
    ] as const) {
      const { status, body } = await flows.ask(`${base}/flows/${id}/explain`, { token: flows.tokenOf(user) });
      expect([base, status]).toEqual([base, code]);
      expect(JSON.stringify(body)).not.toMatch(SECRET);
    }
  });
});

describe("objects for explanations", () => {
  it("are read once for questions that come at once, in pages, and again after a while", async () => {
    const transport = flows.api.server.transport();
    const asked: string[] = [];
    const request: Transport["request"] = (what) => {
      asked.push(what.path);
      return transport.request(what);
    };
    const clock = fakeClock();
    const read = clusterObjects(createClient({ ...transport, request }, { userAgent: "test" }), clock);
    const [first, second] = await Promise.all([read(), read()]);
    expect(first).toBe(second);
    expect(asked.filter((path) => path === "/api/v1/pods")).toHaveLength(1);
    expect(first.get("pods")?.map(({ metadata }) => metadata.name)).toContain("web-5d8f-x2x");
    // Nothing of it decides a verdict.
    for (const path of asked) expect(path).not.toMatch(/services$|affinities$|bgp/);
    expect(await read()).toBe(first);
    await clock.advance(5_000);
    expect(await read()).not.toBe(first);
  });
});

describe("vendorctl flows explain", () => {
  it("prints the sentence first, then the steps, near misses and remedies; the table has the ID", async () => {
    tool = inProcessVendorctl(flows.kubeconfig(flows.tokenOf("auditor")));
    await explainPath("auditor", "", { port: 5450, policies: [END] });
    const wide = await tool.ok("flows", "port:5450", "-A", "-o", "wide");
    const id = /[0-9a-f]{24}$/m.exec(wide)?.[0] ?? "";
    const text = await tool.ok("flows", "explain", id);
    expect(text).toMatch(
      /^Denied: no policy in tier default allows shop\/web to pay\/db on TCP port 5450\.\n\nEgress shop\/web-/,
    );
    expect(text).toContain("\n  tier default: no rule matches, and its end denies it\n");
    expect(text).toMatch(/\nRules that nearly match\n {2}ingress\[1\] of .* this is 5450 \(line \d+\)\n/);
    expect(text).toContain("\nWhat would allow it\n  Add port 5450 to the ports of ingress[1]");
    expect(JSON.parse(await tool.ok("flows", "explain", id, "-o", "json"))).toMatchObject({ kind: "FlowExplanation" });
  });

  it("says in one sentence that there is no such flow, and where IDs are", async () => {
    tool ??= inProcessVendorctl(flows.kubeconfig(flows.tokenOf("auditor")));
    for (const id of ["0".repeat(24), "web"]) {
      const { exit, err } = await tool.run("flows", "explain", id);
      expect(exit).not.toBe(0);
      expect(err).toContain(`there is no flow ${id} [FLOW_UNKNOWN]`);
      expect(err).toContain("vendorctl flows -o wide");
    }
  });
});
