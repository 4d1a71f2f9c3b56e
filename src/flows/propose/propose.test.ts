import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import type { FlowKey } from "../../api/protocol/flow.ts";
import { workloadEnd } from "../../api/protocol/workload-end.ts";
import type { ClusterObjects } from "../explain/cluster-objects.ts";
import { flowKey, outside, policyHit, workload } from "../flow.fixture.ts";
import type { FlowSighting } from "../store/flow-store.ts";
import { joinedPrefixes } from "./address-prefixes.ts";
import { joinedRules } from "./joined-rules.ts";
import { proposedPolicies } from "./proposed-policies.ts";
import { LeftOut, type PairOptions, rulePairs } from "./rule-pairs.ts";
import { labelsOf, podLabels } from "./workload-labels.ts";

function finished<T>(steps: Generator<void, T>): T {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

function pod(name: string, labels: Record<string, string>, hash = "5d8f9c7b6d"): KubeObject {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: `${name}-${hash}`, uid: name, controller: true };
  return {
    ...{ apiVersion: "v1", kind: "Pod" },
    metadata: {
      ...{ name: `${name}-${hash}-x2x`, namespace: "shop", ownerReferences: [owner] },
      labels: { ...labels, "pod-template-hash": hash },
    },
  };
}

/** What selects the workload of the first pod. */
function chosen(...pods: KubeObject[]) {
  const objects: ClusterObjects = new Map([["pods", pods]]);
  return labelsOf(finished(podLabels(objects, new Set(["shop"]))).get("shop") ?? [], workloadEnd(pods[0]!));
}

describe("the labels that select a workload", () => {
  it("are the fewest that no other workload of the namespace has", () => {
    const web = { app: "shop", component: "web", team: "blue" };
    expect(chosen(pod("web", web), pod("db", { app: "shop", component: "db", team: "blue" }))).toEqual({
      labels: { component: "web" },
    });
    const others = [pod("db", { ...web, component: "db" }), pod("old", { ...web, app: "old" })];
    expect(chosen(pod("web", web), ...others)).toEqual({ labels: { app: "shop", component: "web" } });
  });

  it("are those that people know first", () => {
    const labels = { zone: "a", "k8s-app": "web", app: "web", "app.kubernetes.io/name": "web" };
    expect(chosen(pod("web", labels))).toEqual({ labels: { "app.kubernetes.io/name": "web" } });
    expect(chosen(pod("web", { enabled: "true", role: "front" }))).toEqual({ labels: { role: "front" } });
  });

  it("are those that all of its pods have, of each release", () => {
    const now = pod("web", { app: "web", role: "front" }, "7c9d8f5b4c");
    expect(chosen(pod("web", { app: "web", role: "old" }), now)).toEqual({ labels: { app: "web" } });
  });

  it.each([
    ["pod-template-hash", "5d8f9c7b6d"],
    ["controller-revision-hash", "web-7c9d8f5b4c"],
    ["statefulset.kubernetes.io/pod-name", "web-0"],
    ["apps.kubernetes.io/pod-index", "0"],
    ["job-name", "web"],
    ["batch.kubernetes.io/controller-uid", "web"],
    ["app.kubernetes.io/version", "v1"],
    ["helm.sh/chart", "web-1.2.3"],
    ["build", "9f86d081884c"],
    ["release", "web-5d8f9c7b6d"],
    ["minute", "web-28912345"],
    ["id", "c56a4180-65aa-42ec-a945-5fd21dec0538"],
  ])("are never one that changes with a release or a pod: %s=%s", (key, value) => {
    expect(chosen(pod("web", { [key]: value }))).toEqual({ like: [] });
  });

  it.each(["postgres14", "k8s", "v2", "s3", "redis-7", "frontend"])("may be one like app=%s", (value) => {
    expect(chosen(pod("web", { app: value }))).toEqual({ labels: { app: value } });
  });

  it("are missing where another workload has all of them, which is named", () => {
    expect(chosen(pod("web", { app: "web" }), pod("web-canary", { app: "web", track: "canary" }))).toEqual({
      like: ["web-canary"],
    });
  });
});

describe("rules that differ in one place", () => {
  const atoms = (text: string) => text.split(" ").map((one) => ({ peer: one.slice(0, 1), port: one.slice(1) }));
  const joined = (text: string) =>
    joinedRules(atoms(text)).map(({ peers, ports }) => `${peers.join("")} ${ports.join(",")}`);

  it("are joined: ports of the same peers, and peers of the same ports", () => {
    expect(joined("a80 a443 b80 b443 c9090")).toEqual(["ab 443,80", "c 9090"]);
    expect(joined("a80")).toEqual(["a 80"]);
    // By the ports of each peer this would be three rules.
    expect(joined("a1 b2 c1 c2")).toEqual(["ac 1", "bc 2"]);
  });

  it("allow exactly what was seen, whatever it was", () => {
    for (let seed = 1; seed < 300; seed++) {
      const seen = new Set<string>();
      for (let peer = 0; peer < 5; peer++)
        for (let port = 0; port < 4; port++)
          if ((seed * (peer * 7 + 3) * (port * 5 + 1)) % 11 < 5) seen.add(`${peer} ${port}`);
      const rules = joinedRules([...seen].map((one) => ({ peer: one.slice(0, 1), port: one.slice(2) })));
      const allowed = rules.flatMap(({ peers, ports }) =>
        peers.flatMap((peer) => ports.map((port) => `${peer} ${port}`)),
      );
      expect(allowed.sort()).toEqual([...seen].sort());
    }
  });
});

describe("prefixes of addresses", () => {
  it("hold these addresses and no others", () => {
    expect(joinedPrefixes(["10.0.0.1", "10.0.0.0", "10.0.0.2", "10.0.0.3", "10.0.0.9"])).toEqual([
      "10.0.0.0/30",
      "10.0.0.9/32",
    ]);
    expect(joinedPrefixes(["10.0.0.1", "10.0.0.2"])).toEqual(["10.0.0.1/32", "10.0.0.2/32"]);
    expect(joinedPrefixes(["fd00::1", "10.0.0.7", "fd00::"])).toEqual(["10.0.0.7/32", "fd00::/127"]);
    expect(joinedPrefixes([])).toEqual([]);
  });
});

const CHOICES = { namespace: "", egress: false, anyVerdict: false, addresses: false, kind: "kubernetes" } as const;
type Choices = PairOptions & { addresses: boolean; kind: "kubernetes" | "vendor" };

function sighting(key: Partial<FlowKey>, addresses: readonly string[] = []): FlowSighting {
  const { reason: _, ...allowed } = flowKey({ verdict: "Allow", policies: [], ...key });
  return {
    key: key.reason === undefined ? allowed : { ...allowed, reason: key.reason },
    tally: { connections: 3, packets: 9, bytes: 900 },
    ...{ since: 1_000, until: 2_000, sources: addresses, destinations: [], more: addresses.length > 60 },
  };
}

/** Policies for flows between workloads that have no pods: labels are those that were recorded. */
function proposed(sightings: readonly FlowSighting[], some: Partial<Choices> = {}) {
  const choices = { ...CHOICES, ...some };
  const left = new LeftOut();
  const pairs = finished(rulePairs(sightings, choices, left));
  const options = { ...choices, sees: () => true, pods: new Map(), isResolver: () => false };
  const policies = finished(proposedPolicies(pairs, options, left));
  return { policies, left: left.all().map(({ why }) => why) };
}

describe("flows that no rule is made for are left with the reason", () => {
  const node = { type: "Node", namespace: "", name: "node-1" } as const;
  const endpoint = { type: "HostEndpoint", namespace: "", name: "eth0" } as const;
  const many = Array.from({ length: 21 }, (_, index) => `10.0.0.${2 * index}`);
  it.each<[why: string, key: Partial<FlowKey>, choices?: Partial<Choices>, addresses?: string[]]>([
    ["it was denied: ask with verdict:deny to allow it", { verdict: "Deny", policies: [policyHit()] }],
    ["no policy dropped it (no_backend)", { verdict: "Deny", reason: "no_backend" }, { anyVerdict: true }],
    [
      "it was denied where it leaves: ask for egress too",
      { verdict: "Deny", policies: [policyHit({ direction: "Egress" })], reporter: "Source" },
      { anyVerdict: true },
    ],
    ["it was counted where it left alone", { reporter: "Source" }],
    ["ports were merged for want of memory", { port: 0 }],
    ["names were merged for want of memory", { from: workload("shop", "") }],
    ["no rule of Kubernetes names ICMP: ask for policies of vendor", { protocol: "ICMP", port: 0 }],
    ["a host endpoint is protected by GlobalNetworkPolicies", { to: endpoint }],
    ["a host endpoint has no addresses that are sure to stay", { from: endpoint }],
    ["a node reaches its own pods whatever policy says: kubelet probes need no rule", { from: node, reporter: "Both" }],
    ["addresses of nodes: ask for addresses", { from: { ...node, name: "node-9" } }],
    ["an outside address: ask for addresses", { from: outside }],
    ["its addresses are not kept, or not yours to see", { from: outside }, { addresses: true }],
    ["these are 21 prefixes, and a rule has at most 20", { from: outside }, { addresses: true }, many],
    ["not all of its addresses are kept", { from: outside }, { addresses: true }, [...many, ...many, ...many]],
    ["pods of shop/web have no labels that stay", { from: workload("shop", "web", {}) }],
    ["pods of pay/db have no labels that stay", { to: workload("pay", "db", {}) }],
  ])("%s", (why, key, choices, addresses) => {
    expect(proposed([sighting(key, addresses)], choices)).toEqual({ policies: [], left: [why] });
  });

  it("but not if they were counted at the other end too, or are of another namespace", () => {
    const { policies, left } = proposed([sighting({ reporter: "Source" }), sighting({ reporter: "Destination" })]);
    expect(left).toEqual([]);
    expect(policies[0]?.rules).toMatchObject([{ flows: 1, connections: 3, since: 1_000, until: 2_000 }]);
    expect(proposed([sighting({ reporter: "Both" })], { namespace: "shop" })).toEqual({ policies: [], left: [] });
  });
});

describe("rules of vendor", () => {
  it("have one protocol, one namespace and one family each, and selectors joined", () => {
    const { policies } = proposed(
      [
        ...["web", "cart"].map((name) => sighting({ from: workload("shop", name) })),
        sighting({ from: workload("pay", "api", { app: "api", tier: "x" }), protocol: "ICMP", port: 0 }),
        sighting({ from: outside, port: 443 }, ["192.0.2.1", "2001:db8::1"]),
      ],
      { kind: "vendor", addresses: true },
    );
    expect(policies[0]?.object["spec"]).toEqual({
      ...{ tier: "default", selector: 'app == "db"', types: ["Ingress"] },
      ingress: [
        { action: "Allow", protocol: "ICMP", source: { selector: 'app == "api"' } },
        { action: "Allow", protocol: "TCP", source: { nets: ["192.0.2.1/32"] }, destination: { ports: [443] } },
        { action: "Allow", protocol: "TCP", source: { nets: ["2001:db8::1/128"] }, destination: { ports: [443] } },
        {
          ...{ action: "Allow", protocol: "TCP", destination: { ports: [5432] } },
          source: { namespaceSelector: 'vendor.io/name == "shop"', selector: 'app == "cart" || app == "web"' },
        },
      ],
    });
  });
});
