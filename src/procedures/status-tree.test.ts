import { describe, expect, it } from "vitest";
import type { Condition } from "../api/object.ts";
import type { Observation } from "./observation.ts";
import type { OperatorLife } from "./operator-life.ts";
import { statusTree as treeAt } from "./status-tree.ts";
import { acting, agent, agents, dataplane, parked, running } from "./testing/checked-clusters.ts";
import { type Differently, node, object, observed } from "./testing/observed.ts";

const SINCE = "2026-01-01T00:00:00Z";
const LATELY = "2026-01-01T00:59:58Z";
const NOW = Date.parse("2026-01-01T01:00:00Z");
const statusTree = (seen: Observation) => treeAt(seen, NOW);
const status = (name: string, type: string, message: string) => {
  const condition: Condition = { type, status: "True", message, lastTransitionTime: SINCE };
  return object("VendorStatus", name, { status: { conditions: [condition] } });
};
const well = (names: string[]) => names.map((name) => status(name, "Available", "All objects available"));
const rolledOut = { desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2, observedGeneration: 1 };
const deployed = { availableReplicas: 1, updatedReplicas: 1, observedGeneration: 1 };
const nodes = [node("a"), node("b")];
const both = [agent({ node: "a" }), agent({ node: "b", pod: "vendor-node-y" })];
const healthy: Differently = {
  nodes,
  proxy: parked,
  service: {
    ...acting(),
    operator: { ...running().operator!, status: deployed },
    nodeAgents: agents({ status: rolledOut }),
    agents: both,
    statuses: well(["network", "ippools"]),
  },
};
const differing = (service: object): Differently => ({ ...healthy, service: { ...healthy.service, ...service } });

describe("status", () => {
  it("is well, and says so for every part; what nobody asked for is not installed, which is nothing bad", () => {
    const tree = statusTree(observed(healthy));
    expect(tree).toMatchObject({ state: "ok", title: "v3.31.3, installed by operator, data plane eBPF" });
    expect(tree.parts.map(({ name, state }) => `${name}: ${state}`)).toEqual([
      "operator: ok",
      "network: ok",
      "IP pools: ok",
      "node agents: ok",
      "kube-proxy: ok",
      "API server: not installed",
      "flow logs: not installed",
      "flow UI: not installed",
      "versions: ok",
    ]);
    expect(tree.rootCause).toBeUndefined();
  });

  it("names a locked datastore as the cause, and how the lock ends; while its migration works, as under way", () => {
    const run = { id: "m-1", title: "Migrate", outcome: "running", startedAt: SINCE, at: "import" } as const;
    const lock = { state: "locked", where: "the Kubernetes API", writer: "vendorctl", run, moved: false } as const;
    const killed = statusTree(observed({ ...healthy, lock }));
    expect(killed).toMatchObject({ state: "degraded", rootCause: { part: "datastore" } });
    expect(killed.next).toMatch(/^vendorctl resume/);
    const held = { holder: "laptop/1", renewed: LATELY, seconds: 15 };
    expect(statusTree(observed({ ...healthy, lock, run: held })).state).toBe("progressing");
  });

  it("with plain manifests and etcd, node pods that are READY 1/2 and refuse eBPF are well", () => {
    const refused = { programs: { refused: { code: "EbpfProgramsRefused", why: "etcd" } } } as const;
    const service = {
      method: "manifest",
      datastore: "etcd",
      nodeAgents: agents({ status: { ...rolledOut, numberAvailable: 0 } }),
      agents: ["a", "b"].map((node) => agent({ node, ready: "1/2" }, refused)),
    };
    const tree = statusTree(observed(differing(service)));
    expect(tree.title).toMatch(/, etcd datastore$/);
    expect(tree.parts.find(({ name }) => name === "node agents")).toMatchObject({
      state: "ok",
      text: "2 of 2 nodes; READY 1/2 is expected: the etcd datastore cannot watch Services",
    });
    const broken = { ...service, agents: [service.agents[0], agent({ node: "b", ready: "0/2" })] };
    expect(statusTree(observed(differing(broken))).parts.find(({ name }) => name === "node agents")?.state).toBe(
      "progressing",
    );
  });

  it("of each part that is ok: what was checked, when, and on which nodes", () => {
    const checked = ["eBPF: a Service was reached, on a, b"];
    const [network, pools] = well(["network", "ippools"]);
    const statuses = [{ ...network!, status: { ...(network!["status"] as object), checked } }, pools!];
    const tree = statusTree(observed(differing({ statuses, operatorLease: { holder: "x", renewed: LATELY } })));
    const of = (name: string) => tree.parts.find((part) => part.name === name)?.checked;
    expect(of("network")).toEqual({ at: LATELY, what: checked });
    expect(of("operator")).toEqual({
      at: LATELY,
      what: [expect.stringMatching(/^Deployment .*: rolled out; its Lease: renewed$/)],
    });
    expect(of("node agents")).toEqual({
      at: "2026-01-01T01:00:00Z",
      what: ["pods and what they report, on a, b"],
    });
    // An operator of an earlier release does not say it.
    expect(of("IP pools")).toBeUndefined();
    expect(of("flow logs")).toBeUndefined();
  });

  it("tells the first cause in the order of dependence, since when, and the operator's own fix", () => {
    const statuses = [
      status("apiserver", "Degraded", "Its pods have no network."),
      status("network", "Degraded", "The endpoint map lacks the port. Fix: set data.ORCHESTRATOR_SERVICE_PORT."),
    ];
    const tree = statusTree(observed(differing({ statuses })));
    expect(tree).toMatchObject({
      state: "degraded",
      rootCause: { part: "network", since: SINCE, text: expect.stringContaining("lacks the port") },
      next: "set data.ORCHESTRATOR_SERVICE_PORT",
    });
  });

  it("names the nodes whose agents are not well", () => {
    const tree = statusTree(
      observed(differing({ agents: [both[0], agent({ node: "b", phase: "Pending", ready: "0/1" })] })),
    );
    expect(tree.rootCause?.text).toBe("node b: pod vendor-node-x is Pending, READY 0/1");
    expect(tree.next).toBe("vendorctl check");
  });

  it.each<[string, Differently, object, OperatorLife?]>([
    ["nothing is installed", {}, { state: "not installed", next: "vendorctl check --pre && vendorctl install" }],
    ["the operator is gone", differing({ operator: undefined }), { state: "degraded", next: "vendorctl install" }],
    [
      "the operator has no replicas",
      differing({ operator: { ...running().operator!, spec: { replicas: 0 }, status: { observedGeneration: 1 } } }),
      {
        state: "unknown",
        rootCause: { part: "operator", text: expect.stringContaining("has 0 replicas") },
        next: "kubectl -n vendor-operator scale deployment vendor-operator --replicas=1",
      },
    ],
    [
      "the operator is silent",
      differing({ operatorLease: { holder: "gone", renewed: "2026-01-01T00:57:00Z" } }),
      {
        state: "unknown",
        rootCause: { part: "operator", text: expect.stringContaining("lease since 2026-01-01T00:57:00Z") },
        next: "kubectl -n vendor-operator logs deployment/vendor-operator",
      },
    ],
    [
      "the operator is silent, and its pod says why",
      differing({ operatorLease: { holder: "gone", renewed: "2026-01-01T00:57:00Z" } }),
      { state: "unknown", rootCause: { part: "operator", text: expect.stringContaining("Pod crashes") } },
      { renews: false, trouble: "Pod crashes" },
    ],
    [
      "the operator is silent: what it reported is as old as its last word",
      differing({ operatorLease: { holder: "gone", renewed: "2026-01-01T00:57:00Z" } }),
      {
        parts: expect.arrayContaining([
          expect.objectContaining({
            name: "network",
            state: "unknown",
            text: "until 2026-01-01T00:57:00Z: All objects available",
          }),
        ]),
      },
    ],
    [
      "the operator renews its lease with a clock of its own",
      differing({ operatorLease: { holder: "here", renewed: "2026-01-01T00:45:00Z" } }),
      { state: "degraded", rootCause: { part: "operator", text: expect.stringContaining("15 min behind") } },
      { renews: true },
    ],
    [
      "an operator's clock is ahead, and the operator is gone",
      differing({ operatorLease: { holder: "gone", renewed: "2026-01-01T01:15:00Z" } }),
      { state: "unknown", rootCause: { part: "operator" } },
      { renews: false },
    ],
    [
      "a new pod of the operator does not start, and the one before runs",
      differing({
        operator: { ...running().operator!, status: { ...deployed, updatedReplicas: 0 } },
        operatorLease: { holder: "here", renewed: "2026-01-01T00:59:50Z" },
      }),
      { state: "degraded", rootCause: { part: "operator", text: "Pod waits for its image" } },
      { trouble: "Pod waits for its image" },
    ],
    [
      "the operator renews its lease",
      differing({ operatorLease: { holder: "here", renewed: "2026-01-01T00:59:50Z" } }),
      { state: "ok" },
    ],
    [
      "the operator has not reported on a part",
      differing({ apiServer: object("APIServer", "default") }),
      { state: "unknown", rootCause: { part: "API server", text: "the operator has not reported" } },
    ],
    [
      "kube-proxy runs while eBPF serves",
      { ...healthy, proxy: { parked: undefined, pods: { wanted: 2, ready: 2 } } },
      { state: "degraded", rootCause: { part: "kube-proxy" }, next: "vendorctl proxy status" },
    ],
    [
      "kube-proxy runs, and its rules are kept",
      {
        ...differing({
          dataplaneConfiguration: dataplane({ bpfEnabled: true, bpfServiceProxyIptablesCleanupEnabled: false }),
        }),
        proxy: { parked: undefined, pods: { wanted: 2, ready: 2 } },
      },
      { state: "ok" },
    ],
    [
      "a rollout goes on",
      differing({ nodeAgents: agents({ status: { ...rolledOut, updatedNumberScheduled: 1 } }) }),
      { state: "progressing", next: "vendorctl status --watch" },
    ],
    [
      "the proxy is parked and nobody serves",
      { ...differing({ dataplaneConfiguration: undefined }) },
      { state: "degraded", rootCause: { part: "kube-proxy" }, next: "vendorctl proxy status" },
    ],
    [
      "the cluster is older than the tool",
      differing({ version: "v3.27.5" }),
      { state: "ok", next: "vendorctl check --for upgrade && vendorctl upgrade" },
    ],
  ])("when %s", (_what, differently, expected, life = {}) => {
    expect(treeAt(observed(differently), NOW, life)).toMatchObject(expected);
  });
});
