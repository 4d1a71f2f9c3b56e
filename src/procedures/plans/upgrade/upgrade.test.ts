import { describe, expect, it } from "vitest";
import { calicoNames, type Names, vendorNames } from "../../../api/names.ts";
import type { KubeObject } from "../../../api/object.ts";
import { readAgentReport } from "../../../api/protocol/agent-report.ts";
import { customResourceDefinitions } from "../../../api/schema/crd.ts";
import { isUnaltered } from "../../make-plan.ts";
import type { Observation, OwnedThroughV3 } from "../../observation.ts";
import type { Plan } from "../../plan.ts";
import { node, object, observed } from "../../testing/observed.ts";
import { planDisableFlows, planEnableFlows } from "../install/flows.ts";
import type { WavesInputs } from "../node-waves.ts";
import { planUpgrade, type UpgradeFacts } from "./upgrade.ts";
import { type UpgradeWishes, upgradePath } from "./upgrade-path.ts";

const DIALECTS = [vendorNames, calicoNames];
const GIVEN = { manifest: false, base: false, values: false, chart: false };

const facts = (more: Partial<UpgradeFacts> = {}): UpgradeFacts => ({
  definitions: { name: "operator-crds.yaml", from: "built in", digest: "sha256:1" },
  crds: customResourceDefinitions(),
  takeOvers: [],
  appliers: [],
  oldApiServer: false,
  behind: [],
  ...more,
});
const merged = (more: Partial<NonNullable<UpgradeFacts["merged"]>> = {}): NonNullable<UpgradeFacts["merged"]> => ({
  file: "vendor.yaml",
  from: "built in",
  digest: "sha256:2",
  text: "",
  objects: [],
  edits: [],
  conflicts: [],
  comments: 0,
  dropped: [],
  untaken: [],
  editsFrom: "the cluster",
  ...more,
});
const chart = (tool: boolean) => ({ tool, values: "a: 1\n", chart: undefined, connection: [] });

function cluster(
  names: Names,
  service: Partial<Observation["service"]>,
  owned: readonly OwnedThroughV3[] = [],
): Observation {
  return observed({ names, owned, service: { method: "operator", datastore: "api", version: "v3.27.5", ...service } });
}
const plan = (seen: Observation, more: Partial<UpgradeFacts> = {}, wishes: Partial<UpgradeWishes> = {}) =>
  planUpgrade(seen, upgradePath(seen, { given: GIVEN, ...wishes }), facts(more), { command: "vendorctl upgrade" });
const ids = ({ steps }: ReturnType<typeof plan>) => steps.map(({ id }) => id);
const OWNED: OwnedThroughV3 = {
  apiVersion: "v1",
  kind: "ConfigMap",
  namespace: "shop",
  name: "notes",
  uid: "u",
  reference: { apiVersion: "vendor.io/v3", kind: "NetworkPolicy", name: "web", uid: "p" },
};

it("edits that may be of another release of the line are named as such", () => {
  const seen = cluster(vendorNames, { method: "operator", version: "v3.31.2" });
  const edits = [{ path: "ClusterRole/vendor-operator:rules[a]", from: "a", to: undefined }];
  const notes = (more: Parameters<typeof merged>[0]) => plan(seen, { merged: merged(more) }).notes.join("\n");
  const named = "If an edit above is not yours, give the file as v3.31.2 published it: --base FILE";
  expect(notes({ edits, baseGuessed: true })).toContain(named);
  expect(notes({ edits })).not.toContain("--base");
  expect(notes({ baseGuessed: true })).not.toContain("--base");
});

describe("an installation with Typha of the public system", () => {
  const typha = {
    ...object("Deployment", "calico-typha", {}, "apps/v1"),
    metadata: { name: "calico-typha", namespace: "kube-system" },
  };
  const stored = { objects: [], deployments: [typha], annotated: [] };
  const service = { method: "manifest", datastore: "api", variant: "networking", version: "v3.27.5" } as const;

  it("is upgraded by the file that has it, and it is waited for before the agents", () => {
    const seen = observed({ names: calicoNames, owned: [], service, stored });
    expect(calicoNames.manifests[upgradePath(seen, { given: GIVEN }).file!]).toBe("calico-typha.yaml");
    const steps = ids(plan(seen, { merged: merged({ objects: [typha] }), crds: [] }));
    expect(steps.slice(-4)).toEqual(["typha-updated", "nodes-updated", "controllers-updated", "verify-version"]);
  });
});

describe("losses", () => {
  const peer = object("BGPPeer", "rack-1", { spec: {} }, "crd.vendor.io/v1");
  const stored = { objects: [peer], deployments: [], annotated: [] };
  const seen = observed({ owned: [], service: { method: "operator", datastore: "api", version: "v3.27.5" }, stored });
  const planned = (acceptLoss: string[]) =>
    planUpgrade(seen, upgradePath(seen, { given: GIVEN }), facts({ merged: merged() }), {
      command: "vendorctl upgrade",
      acceptLoss,
    });

  it("are in the plan, with those that were accepted; another name is refused", () => {
    expect(planned([]).inventory).toMatchObject([{ name: "BGPPeer", fate: "lost" }]);
    expect(planned(["BGPPeer"]).inventory).toMatchObject([{ name: "BGPPeer", fate: "lost", accepted: true }]);
    expect(() => planned(["BGPPeers"])).toThrow("--accept-loss names BGPPeers, which is no loss of this plan");
  });

  it("and versions and the impact are part of what the plan's hash is made of", () => {
    const made = planned(["BGPPeer"]);
    expect(made.components).toContainEqual({ component: "CRDs", current: "v3.27.5", target: "v3.31.3" });
    expect(made.impact).toMatchObject({
      atOnce: 1,
      seconds: 120,
      nodes: expect.arrayContaining([{ node: "worker-1", restarts: ["vendor-node"] }]),
    });
    expect(isUnaltered(made)).toBe(true);
    expect(isUnaltered({ ...made, inventory: [] })).toBe(false);
  });
});

describe.each(DIALECTS)("an upgrade in the words of $dialect", (names) => {
  const agents = object("DaemonSet", names.workloads.node, {}, "apps/v1");

  it.each<[what: string, service: Partial<Observation["service"]>, more: Partial<UpgradeFacts>, steps: string[]]>([
    [
      "operator",
      { method: "operator" },
      { merged: merged() },
      ["save-service", "definitions", "operator", "operator-updated", "complete", "verify-version"],
    ],
    [
      "operator that kubectl created",
      { method: "operator" },
      { merged: merged(), appliers: ["kubectl-create"] },
      ["save-service", "definitions", "adopt-fields", "operator", "operator-updated", "complete", "verify-version"],
    ],
    [
      "chart",
      { method: "chart" },
      { chart: chart(true) },
      ["save-service", "definitions", "chart", "operator-updated", "complete", "verify-version"],
    ],
    [
      "manifest",
      { method: "manifest", variant: "networking", nodeAgents: agents },
      { merged: merged() },
      ["save-service", "definitions", "manifest", "nodes-updated", "controllers-updated", "verify-version"],
    ],
    [
      "manifest on etcd",
      { method: "manifest", variant: "networking", datastore: "etcd", nodeAgents: agents },
      { merged: merged() },
      ["save-service", "manifest", "nodes-updated", "controllers-updated", "verify-version"],
    ],
    [
      "stored in an older version",
      { method: "operator" },
      { merged: merged(), behind: ["x.crd"] },
      ["save-service", "definitions", "operator", "operator-updated", "complete", "verify-version", "stored-versions"],
    ],
  ])("by %s has these steps", (_what, service, more, steps) => {
    expect(ids(plan(cluster(names, service), more))).toEqual(steps);
  });

  describe("with a roll-out in waves", () => {
    const nodes = ["head", "a", "b", "c"].map((name) => node(name, { controlPlane: name === "head" }));
    const daemonSet = (updateStrategy: object) =>
      object(
        "DaemonSet",
        names.workloads.node,
        { spec: { updateStrategy, template: { spec: { containers: [{ image: "r/vendor:v3.27.5" }] } } } },
        "apps/v1",
      );
    const running = (service: Partial<Observation["service"]>) =>
      observed({
        ...{ names, owned: [], nodes: [...nodes, node("new")] },
        service: {
          ...{ method: "operator", datastore: "api", version: "v3.27.5" },
          nodeAgents: daemonSet({ type: "RollingUpdate", rollingUpdate: { maxUnavailable: 2 } }),
          agents: nodes.map(({ name }) => ({
            node: name,
            pod: `p-${name}`,
            phase: "Running",
            ready: "1/1",
            report: readAgentReport({}),
          })),
          ...service,
        },
      });
    const inWaves = (
      service: Partial<Observation["service"]>,
      more: Partial<UpgradeFacts>,
      waves?: WavesInputs | null,
    ) => {
      const seen = running(service);
      return planUpgrade(seen, upgradePath(seen, { given: GIVEN }), facts({ merged: merged(), ...more }), {
        command: "vendorctl upgrade",
        ...(waves !== null && { waves: waves ?? { size: { nodes: 2 }, serving: ["b"] } }),
      });
    };
    const replaced = ({ steps }: Plan) =>
      steps.filter(({ action }) => action === "update-agents").map(({ inputs }) => inputs["nodes"]);

    it("the operator's agents are held, replaced one node first and as many at a time as may be unavailable, then released", () => {
      const made = inWaves({ installation: object("Installation", "default") }, {});
      expect(ids(made)).toEqual([
        ...["save-service", "definitions", "hold-agents", "operator", "operator-updated", "agents-rendered"],
        ...["update-canary", "update-wave-1", "update-wave-2", "release-agents", "complete", "verify-version"],
      ]);
      expect(replaced(made)).toEqual([["b"], ["a", "c"], ["head"]]);
      const inputs = (id: string) => made.steps.find((step) => step.id === id)?.inputs;
      expect(inputs("hold-agents")).toMatchObject({
        target: { kind: "Installation" },
        patch: { spec: { nodeUpdateStrategy: { type: "OnDelete", rollingUpdate: null } } },
      });
      expect(inputs("update-canary")).toMatchObject({ atOnce: 2, workload: { name: names.workloads.node } });
      expect(inputs("release-agents")).toMatchObject({ patch: { spec: { nodeUpdateStrategy: null } } });
    });

    it("the strategy is restored as it was written", () => {
      const strategy = { rollingUpdate: { maxUnavailable: "10%" } };
      const installation = object("Installation", "default", { spec: { nodeUpdateStrategy: strategy } });
      const made = inWaves({ installation }, {});
      expect(made.steps.find(({ id }) => id === "release-agents")?.inputs).toMatchObject({
        patch: { spec: { nodeUpdateStrategy: { type: null, ...strategy } } },
      });
    });

    it("a manifest is applied with its DaemonSet held, and in the end as it is", () => {
      const agents = daemonSet({ type: "RollingUpdate" });
      const made = inWaves({ method: "manifest", variant: "networking" }, { merged: merged({ objects: [agents] }) });
      expect(ids(made)).toEqual([
        ...["save-service", "definitions", "manifest", "update-canary", "update-wave-1", "update-wave-2"],
        ...["release-agents", "nodes-updated", "controllers-updated", "verify-version"],
      ]);
      const applied = (id: string) => made.steps.find((step) => step.id === id)?.inputs["objects"];
      expect(applied("manifest")).toMatchObject([{ spec: { updateStrategy: { type: "OnDelete" } } }]);
      expect(applied("release-agents")).toEqual([agents]);
    });

    it("the DaemonSet rolls by itself without waves and on one node, but not if it is OnDelete", () => {
      const held = { nodeAgents: daemonSet({ type: "OnDelete" }) };
      const one = { agents: running({}).service.agents.slice(0, 1) };
      expect(replaced(inWaves({}, {}, null))).toEqual([]);
      expect(replaced(inWaves(one, {}))).toEqual([]);
      expect(replaced(inWaves(held, {}, null))).toEqual([["head", "a", "b", "c"]]);
      expect(replaced(inWaves({ ...held, ...one }, {}))).toEqual([["head"]]);
    });

    it("a canary that is no node is refused", () => {
      expect(() => inWaves({}, {}, { size: { nodes: 1 }, serving: [], canary: "z" })).toThrow(
        expect.objectContaining({ code: "CANARY_NODE_UNKNOWN" }),
      );
    });
  });

  it.each<[variant: "networking" | "overlay" | "policy-only", datastore: "api" | "etcd", ready: string, file: string]>([
    ["networking", "api", names.ready.apiDatastore, names.manifests.policyAndNetworking],
    ["overlay", "api", names.ready.overlay, names.manifests.policyAndOverlay],
    ["policy-only", "api", names.ready.apiDatastore, names.manifests.policyOnly],
    ["networking", "etcd", names.ready.etcdDatastore, names.manifests.policyAndNetworkingEtcd],
    ["overlay", "etcd", names.ready.etcdDatastore, names.manifests.policyAndOverlayEtcd],
  ])("of the %s manifest on %s waits for READY %s, from %s", (variant, datastore, ready, file) => {
    const seen = cluster(names, { method: "manifest", variant, datastore, nodeAgents: agents });
    const path = upgradePath(seen, { given: GIVEN });
    expect(names.manifests[path.file as "operator"]).toBe(file);
    const wait = plan(seen, { merged: merged() }).steps.find(({ id }) => id === "nodes-updated");
    expect(wait?.inputs).toMatchObject({ ready, workload: { kind: "DaemonSet" } });
  });

  it("across v3.28 carries owner references round everything else, and only then", () => {
    const across = ids(plan(cluster(names, {}, [OWNED]), { merged: merged() }));
    expect(across.slice(0, 3)).toEqual(["save-owner-references", "strip-owner-references", "save-service"]);
    expect(across.slice(-3)).toEqual(["restore-owner-references", "prove-owned-objects", "forget-owner-references"]);
    expect(ids(plan(cluster(names, { version: "v3.28.0" }, [OWNED]), { merged: merged() }))[0]).toBe("save-service");
  });

  it("says which release the chart tool upgrades with which values, or tells the person to", () => {
    const release = { name: "net", namespace: "ops", chart: names.chart.name, version: "v3.27.5", status: "deployed" };
    const seen = cluster(names, { method: "chart", release });
    const withTool = plan(seen, { chart: { ...chart(true), connection: ["--kube-context", "prod"] } });
    const source = `${names.chart.repository}/${names.chart.name}`;
    expect(withTool.steps.find(({ id }) => id === "chart")).toMatchObject({
      action: "run-tool",
      inputs: {
        program: "helm",
        input: "a: 1\n",
        args: [
          "upgrade",
          "net",
          source,
          "--version",
          "v3.31.3",
          "--namespace",
          "ops",
          "--kube-context",
          "prod",
          "--values",
          "-",
        ],
      },
    });
    const told = plan(seen, { chart: chart(false) }).steps.find(({ id }) => id === "chart");
    expect(told).toMatchObject({ action: "wait-outside", where: expect.stringContaining("not on this machine") });
    expect(told?.inputs["tell"]).toContainEqual(
      `helm upgrade net ${source} --version v3.31.3 --namespace ops --values values.yaml`,
    );
  });

  it("tells what to know: recommendations, the temporary policy, flow logs, older tools", () => {
    const policy: KubeObject = object("GlobalNetworkPolicy", `default.${names.hostEndpoints.temporaryUpgradePolicy}`);
    const seen = observed({
      names,
      owned: [],
      service: { method: "manifest", variant: "networking", datastore: "etcd", version: "v3.20.0", nodeAgents: agents },
      v3: { globalNetworkPolicies: [policy] },
    });
    const notes = plan(seen, { merged: merged() }).notes.join("\n");
    expect(notes).toContain("the Kubernetes API datastore is recommended");
    expect(notes).toContain("one by the operator is recommended");
    expect(notes).toContain(names.hostEndpoints.temporaryUpgradePolicy);
    expect(notes).toContain("an older one must not write");
    const byOperator = plan(cluster(names, { version: "v3.29.0" }), { merged: merged() }).notes.join("\n");
    expect(byOperator).toContain("vendorctl flows enable --ui");
  });

  it("enables flow logs, with the page only where it is asked for, and disables them in reverse", () => {
    const seen = cluster(names, { version: "v3.31.3" });
    const { flowLogs, flowUI } = names.statuses;
    expect(ids(planEnableFlows(seen, { ui: false, command: "" }))).toEqual([
      `enable-${flowLogs}`,
      `${flowLogs}-available`,
    ]);
    expect(ids(planEnableFlows(seen, { ui: true, command: "" }))).toHaveLength(4);
    const enabled = cluster(names, {
      version: "v3.31.3",
      flowLogs: object("x", "default"),
      flowUI: object("y", "default"),
    });
    expect(ids(planEnableFlows(enabled, { ui: true, command: "" }))).toEqual([
      `${flowLogs}-available`,
      `${flowUI}-available`,
    ]);
    const kinds = [names.kinds.flowUI.kind, names.kinds.flowLogs.kind].map((kind) => `disable-${kind.toLowerCase()}`);
    expect(ids(planDisableFlows(enabled, { command: "" }))).toEqual(kinds);
  });
});

/** What each combination that is refused says. */
const REFUSED: readonly [
  what: string,
  seen: Observation,
  wishes: Partial<UpgradeWishes>,
  more: Partial<UpgradeFacts>,
  code: string,
  sentence: RegExp,
][] = [
  ["nothing installed", observed(), {}, {}, "UPGRADE_NOTHING_INSTALLED", /the service is not installed/],
  [
    "below v3.15",
    cluster(vendorNames, { version: "v3.14.2" }),
    {},
    {},
    "UPGRADE_FROM_TOO_OLD",
    /v3\.14\.2 is older than v3\.15/,
  ],
  ["a downgrade", cluster(vendorNames, { version: "v3.32.0" }), {}, {}, "UPGRADE_BACKWARDS", /does not go back/],
  [
    "to an older line",
    cluster(vendorNames, {}),
    { to: "v3.30.4" },
    {},
    "UPGRADE_TARGET_UNKNOWN",
    /upgrades to v3\.31, not to v3\.30\.4/,
  ],
  ["to a line to come", cluster(vendorNames, {}), { to: "v3.32" }, {}, "UPGRADE_TARGET_UNKNOWN", /not to v3\.32/],
  [
    "to another release of the line",
    cluster(vendorNames, {}),
    { to: "v3.31.9" },
    {},
    "UPGRADE_TARGET_UNKNOWN",
    /has the files of v3\.31\.3, not of v3\.31\.9/,
  ],
  [
    "a tool of another version",
    observed({ service: { method: "operator", version: "v3.27.5" }, tool: { version: "v3.30.4" } }),
    {},
    {},
    "UPGRADE_TOOL_OTHER_VERSION",
    /vendorctl v3\.30\.4 does not upgrade to v3\.31\.3/,
  ],
  [
    "a version nobody knows",
    cluster(vendorNames, { version: undefined }),
    {},
    {},
    "UPGRADE_VERSION_UNKNOWN",
    /is unknown/,
  ],
  [
    "a version nobody can read",
    cluster(vendorNames, { version: "latest" }),
    {},
    {},
    "UPGRADE_VERSION_UNREADABLE",
    /"latest" is not a version/,
  ],
  [
    "a manifest by the operator",
    cluster(vendorNames, { method: "manifest" }),
    { method: "operator" },
    {},
    "UPGRADE_OTHER_METHOD",
    /installed by manifest and cannot be upgraded by operator/,
  ],
  [
    "an operator by chart",
    cluster(vendorNames, {}),
    { method: "chart" },
    {},
    "UPGRADE_OTHER_METHOD",
    /installed by operator/,
  ],
  [
    "a manifest for a chart",
    cluster(vendorNames, { method: "chart" }),
    { given: { ...GIVEN, manifest: true } },
    {},
    "UPGRADE_FLAG_OF_OTHER_METHOD",
    /--manifest has no effect/,
  ],
  [
    "values for a manifest",
    cluster(vendorNames, { method: "manifest" }),
    { given: { ...GIVEN, values: true } },
    {},
    "UPGRADE_FLAG_OF_OTHER_METHOD",
    /--values has no effect/,
  ],
  [
    "a release that is being changed",
    cluster(vendorNames, {
      method: "chart",
      release: { name: "vendor", namespace: "x", chart: "c", version: "1", status: "pending-upgrade" },
    }),
    {},
    { chart: chart(true) },
    "UPGRADE_CHART_PENDING",
    /is pending-upgrade/,
  ],
  [
    "an edit both made",
    cluster(vendorNames, {}),
    {},
    {
      merged: merged({
        conflicts: [{ path: "Deployment/a/b:spec.replicas", why: "both changed", base: 1, theirs: 3, ours: 2 }],
      }),
    },
    "UPGRADE_EDITS_CLASH",
    /Deployment\/a\/b:spec\.replicas \(both changed it: published 1, yours 3, new 2\)/,
  ],
  [
    "an edit of a Secret",
    cluster(vendorNames, {}),
    {},
    {
      merged: merged({
        conflicts: [
          { path: "Secret/a/b:data.key", why: "gone", base: "c2VjcmV0", theirs: "bWluZQ==", ours: undefined },
        ],
      }),
    },
    "UPGRADE_EDITS_CLASH",
    /published \(secret\), yours \(secret\), new nothing/,
  ],
  [
    "a decision nobody asked for",
    cluster(vendorNames, {}),
    {},
    { merged: merged({ untaken: ["Deployment/x:spec"] }) },
    "UPGRADE_TAKE_UNKNOWN",
    /--take names Deployment\/x:spec/,
  ],
  [
    "an etcd that is nowhere",
    cluster(vendorNames, { method: "manifest", datastore: "etcd" }),
    {},
    {
      merged: merged({
        objects: [object("ConfigMap", "vendor-config", { data: { etcd_endpoints: "https://<ETCD_IP>:<ETCD_PORT>" } })],
      }),
    },
    "UPGRADE_ETCD_UNSET",
    /etcd_endpoints .* is not set/,
  ],
];

describe("an upgrade is refused before anything is changed", () => {
  it.each(REFUSED)("%s", (_what, seen, wishes, more, code, sentence) => {
    const refusal = expect.objectContaining({ code, message: expect.stringMatching(sentence) });
    expect(() => plan(seen, more, wishes)).toThrow(refusal);
  });

  it("and a repair of the version that runs is not", () => {
    const seen = cluster(vendorNames, { version: "v3.31.3" });
    expect(plan(seen, { merged: merged() }).title).toBe("Upgrade from v3.31.3 to v3.31.3, by operator");
  });

  it("flow logs without an operator, or where there are none to disable", () => {
    const manifest = cluster(vendorNames, { method: "manifest", version: "v3.31.3" });
    expect(() => planEnableFlows(manifest, { ui: false, command: "" })).toThrow(
      expect.objectContaining({ code: "FLOWS_NEED_OPERATOR" }),
    );
    const none = cluster(vendorNames, { version: "v3.31.3" });
    expect(() => planDisableFlows(none, { command: "" })).toThrow(
      expect.objectContaining({ code: "FLOWS_NOT_ENABLED" }),
    );
  });
});
