import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../../api/object.ts";
import { failsafesOf } from "./control-plane-probes.ts";
import { simulationSentences } from "./host-endpoint-messages.ts";
import { reviewPolicy, type SimulatedNode, simulateHostEndpoints } from "./host-endpoint-simulation.ts";

const node = (name: string, address: string, more: Partial<SimulatedNode> = {}): SimulatedNode => ({
  name,
  addresses: [address],
  controlPlane: name.startsWith("control"),
  labels: { "kubernetes.io/os": "linux", role: name.startsWith("control") ? "control" : "worker" },
  now: [],
  ...more,
});
const NODES = [node("control-1", "10.0.0.1"), node("worker-1", "10.0.0.11"), node("worker-2", "10.0.0.12")];
const policy = (name: string, spec: object): KubeObject => ({
  apiVersion: "crd.vendor.io/v1",
  kind: "GlobalNetworkPolicy",
  metadata: { name },
  spec,
});
const tier = (name: string, spec: object): KubeObject => ({
  apiVersion: "crd.vendor.io/v1",
  kind: "Tier",
  metadata: { name },
  spec,
});
const simulate = (
  policies: KubeObject[],
  more: { tiers?: KubeObject[]; nodes?: SimulatedNode[]; configuration?: object } = {},
) =>
  simulateHostEndpoints({
    nodes: more.nodes ?? NODES,
    policies,
    tiers: more.tiers ?? [],
    failsafes: failsafesOf(more.configuration && ({ spec: more.configuration } as unknown as KubeObject)),
    apiServerPort: 6443,
  });
/** What would be cut, as `what at node direction`. */
const cuts = (...args: Parameters<typeof simulate>) =>
  simulate(...args).cuts.map(
    ({ what, node: at, direction }) => `${what} ${direction === "Ingress" ? "to" : "from"} ${at}`,
  );

const denyAll = (name: string, more: object = {}) =>
  policy(name, { selector: "all()", types: ["Ingress", "Egress"], ...more });

describe("which policies would start to act on the nodes", () => {
  it.each([
    ["one without a selector is for everything", policy("default.a", {}), 3],
    ["one for all()", denyAll("default.a"), 3],
    ["one for a label of some nodes", policy("default.a", { selector: "role == 'worker'" }), 2],
    ["one for pods by label", policy("default.a", { selector: "app == 'web'" }), 0],
    ["one for pods of some namespaces is not for nodes", policy("default.a", { namespaceSelector: "team == 'a'" }), 0],
    ["one for all namespaces is not for nodes", policy("default.a", { namespaceSelector: "all()" }), 0],
    ["one for what has no namespace", policy("default.a", { namespaceSelector: "global()" }), 3],
    ["one for service accounts is not for nodes", policy("default.a", { serviceAccountSelector: "all()" }), 0],
    ["one that cannot be read selects nothing", policy("default.a", { selector: "role = " }), 0],
    ["one in another tier", policy("security.a", { tier: "security", selector: "all()" }), 3],
    ["one before translation", policy("default.a", { preDNAT: true, applyOnForward: true, selector: "all()" }), 3],
  ])("%s", (_title, one, nodes) => {
    expect(simulate([one]).bites.flatMap((bite) => bite.nodes)).toHaveLength(nodes);
  });

  it("says what of the traffic each decides", () => {
    const traffic = (spec: object) => simulate([policy("default.a", spec)]).bites[0]?.traffic;
    expect(traffic({})).toBe("local");
    expect(traffic({ applyOnForward: true })).toBe("local and forwarded");
    expect(traffic({ applyOnForward: true, preDNAT: true })).toBe("before translation");
    expect(traffic({ applyOnForward: true, doNotTrack: true })).toBe("untracked");
  });

  it("does not count one that acts on the node through its endpoint already", () => {
    const now = [{ labels: { "host-endpoint": "ingress" }, hasProfile: true }];
    const nodes = [node("worker-1", "10.0.0.11", { labels: { "host-endpoint": "ingress" }, now })];
    expect(simulate([policy("default.a", { selector: "has(host-endpoint)" })], { nodes }).bites).toEqual([]);
  });

  it("names nodes that an endpoint without a profile closes now, and the new one would open", () => {
    const nodes = [node("worker-1", "10.0.0.11", { now: [{ labels: {}, hasProfile: false }] }), NODES[0]!];
    expect(simulate([], { nodes }).opens).toEqual(["worker-1"]);
  });
});

describe("what of the control plane would be cut off", () => {
  it("nothing, where no policy acts on nodes", () => {
    expect(cuts([policy("default.pods", { selector: "app == 'web'", types: ["Ingress"] })])).toEqual([]);
  });

  it("the kubelet, by a policy that allows nothing; failsafe ports stay open", () => {
    expect(cuts([denyAll("default.locked")])).toEqual([
      "kubelet to worker-1",
      "kubelet to worker-2",
      "kubelet from control-1",
    ]);
  });

  it("more, where the configuration leaves no failsafe ports", () => {
    const all = cuts([denyAll("default.locked")], {
      configuration: { failsafeInboundHostPorts: [], failsafeOutboundHostPorts: [] },
    });
    expect(all).toContain("API server to control-1");
    expect(all).toContain("API server from worker-1");
    expect(all).toContain("names from worker-2");
  });

  const kubeletFrom = (source: object, more: object = {}) => ({
    selector: "all()",
    types: ["Ingress"],
    ingress: [{ action: "Allow", protocol: "TCP", source, destination: { ports: [10250] } }],
    ...more,
  });
  it.each([
    ["a rule for everybody", {}, []],
    ["a prefix the control plane is in", { nets: ["10.0.0.0/29"] }, []],
    ["one address, without a length", { nets: ["10.0.0.1"] }, []],
    ["a prefix it is not in", { nets: ["192.168.0.0/16"] }, ["kubelet to worker-1", "kubelet to worker-2"]],
    ["all but a prefix it is in", { notNets: ["10.0.0.0/8"] }, ["kubelet to worker-1", "kubelet to worker-2"]],
    ["labels the control plane's endpoint has", { selector: "role == 'control'" }, []],
    ["labels it has not", { selector: "role == 'worker'" }, ["kubelet to worker-1", "kubelet to worker-2"]],
    ["what has no namespace", { namespaceSelector: "global()" }, []],
    ["pods of a namespace", { namespaceSelector: "team == 'a'" }, ["kubelet to worker-1", "kubelet to worker-2"]],
    ["a service account", { serviceAccounts: { names: ["a"] } }, ["kubelet to worker-1", "kubelet to worker-2"]],
    [
      "certain source ports, which nobody can promise",
      { ports: [1024] },
      ["kubelet to worker-1", "kubelet to worker-2"],
    ],
  ])("allowed from %s", (_title, source, expected) => {
    expect(cuts([policy("default.kubelet", kubeletFrom(source))])).toEqual(expected);
  });

  it.each([
    ["ranges", [{ action: "Allow", protocol: "TCP", destination: { ports: ["10000:11000"] } }], 0],
    ["text numbers", [{ action: "Allow", protocol: "TCP", destination: { ports: ["10250"] } }], 0],
    [
      "names automatic endpoints do not have",
      [{ action: "Allow", protocol: "TCP", destination: { ports: ["kubelet"] } }],
      2,
    ],
    ["another protocol", [{ action: "Allow", protocol: "UDP" }], 2],
    ["a protocol by number", [{ action: "Allow", protocol: 6 }], 0],
    ["not this protocol", [{ action: "Allow", notProtocol: "TCP" }], 2],
    ["not these ports", [{ action: "Allow", protocol: "TCP", destination: { notPorts: [22] } }], 0],
    ["the other IP version", [{ action: "Allow", ipVersion: 6 }], 2],
    ["a log before", [{ action: "Log" }, { action: "Allow" }], 0],
    ["a deny before", [{ action: "Deny", protocol: "TCP" }, { action: "Allow" }], 2],
    ["a pass to where nothing else decides", [{ action: "Pass" }], 0],
    ["HTTP, which is not known here", [{ action: "Allow", http: { methods: ["GET"] } }], 2],
  ])("rules with %s", (_title, ingress, count) => {
    expect(cuts([policy("default.kubelet", { selector: "all()", types: ["Ingress"], ingress })])).toHaveLength(count);
  });

  it("asks tiers and policies in their order", () => {
    const allow = { types: ["Ingress"], ingress: [{ action: "Allow" }] };
    const deny = { types: ["Ingress"], ingress: [{ action: "Deny" }] };
    const tiers = [tier("security", { order: 100 })];
    const secured = (spec: object) => policy("security.first", { tier: "security", selector: "all()", ...spec });
    expect(cuts([secured(allow), policy("default.b", deny)], { tiers })).toEqual([]);
    expect(cuts([secured(deny), policy("default.b", allow)], { tiers })).toHaveLength(2);
    expect(cuts([policy("default.b", { ...deny, order: 2 }), policy("default.a", { ...allow, order: 1 })])).toEqual([]);
    expect(cuts([policy("default.b", { ...deny, order: 2 }), policy("default.a", allow)])).toHaveLength(2);
    const passing = [tier("security", { order: 100, defaultAction: "Pass" })];
    const nothing = { types: ["Ingress"], ingress: [] };
    expect(cuts([secured(nothing)], { tiers: passing })).toEqual([]);
    expect(cuts([secured(nothing)], { tiers })).toHaveLength(2);
  });

  it("counts a deny before translation, and lets the rest of such a policy pass", () => {
    const early = (ingress: object[]) =>
      policy("default.early", { preDNAT: true, applyOnForward: true, types: ["Ingress"], selector: "all()", ingress });
    expect(cuts([early([])])).toEqual([]);
    expect(cuts([early([{ action: "Deny", protocol: "TCP", destination: { ports: [10250] } }])])).toHaveLength(2);
  });
});

describe("the temporary policy of old upgrades", () => {
  const temporary = policy("default.allow-all-upgrade", {
    selector: "all()",
    order: 1,
    types: ["Ingress", "Egress"],
    ingress: [{ action: "Log" }, { action: "Allow" }],
    egress: [{ action: "Allow" }],
  });
  const inputs = (policies: KubeObject[]) => ({
    nodes: NODES,
    policies,
    tiers: [],
    failsafes: failsafesOf(undefined),
    apiServerPort: 6443,
  });

  it("is found to hold open what another policy would close", () => {
    const review = reviewPolicy(inputs([temporary, denyAll("default.locked")]), (one) => one === temporary);
    expect(review.nodes).toHaveLength(3);
    expect(review.others).toEqual(["locked"]);
    expect(review.cuts.map(({ what }) => what)).toContain("kubelet");
  });

  it("is found to hold open nothing, where nothing else decides", () => {
    const review = reviewPolicy(inputs([temporary]), (one) => one === temporary);
    expect(review).toMatchObject({ others: [], cuts: [] });
  });
});

it("says it in sentences, nodes with the same fate together", () => {
  expect(simulationSentences(simulate([denyAll("default.locked")]))).toEqual([
    "Simulation: kubelet (TCP 10250) to worker-1, worker-2 would be denied by locked (no rule lets it through).",
    "Simulation: kubelet (TCP 10250) from control-1 would be denied by locked (no rule lets it through).",
    "Simulation: policy locked (all()) would start to decide ingress and egress of local traffic on control-1, worker-1, worker-2.",
  ]);
  expect(simulationSentences(simulate([]))).toEqual(["Simulation: no policy would start to apply to nodes."]);
});

it("judges a thousand nodes in moments", () => {
  const many = Array.from({ length: 1000 }, (_, i) =>
    node(i < 3 ? `control-${i}` : `worker-${i}`, `10.1.${i >> 8}.${i & 255}`),
  );
  const policies = Array.from({ length: 20 }, (_, i) =>
    denyAll(`default.p${i}`, { ingress: [{ action: "Allow", source: { nets: [`10.2.${i}.0/24`] } }] }),
  );
  const start = performance.now();
  expect(simulate(policies, { nodes: many }).bites).toHaveLength(20);
  expect(performance.now() - start).toBeLessThan(10_000);
});
