import { describe, expect, it } from "vitest";
import { calicoNames, type Names, vendorNames } from "../../../api/names.ts";
import { groupVersion, type KubeObject } from "../../../api/object.ts";
import type { OwnedThroughV3 } from "../../observation.ts";
import { node, observed } from "../../testing/observed.ts";
import { planHostEndpoints } from "../host-endpoints/host-endpoints.ts";
import { planOwnerReferences } from "./migrate-owner-references.ts";
import { planSidecars } from "./sidecars.ts";

const command = "vendorctl migrate";
const DIALECTS = [{ names: vendorNames }, { names: calicoNames }].map(({ names }) => ({
  names,
  dialect: names.dialect,
}));

describe.each(DIALECTS)("migrate host-endpoints, in the words of $dialect", ({ names }) => {
  const endpoint = (name: string, spec: object, labels: Record<string, string> = {}): KubeObject => ({
    apiVersion: groupVersion(names.groups.stored),
    kind: names.kinds.hostEndpoint.kind,
    metadata: { name, labels },
    spec,
  });
  const old = (name: string, on: string, labels: Record<string, string> = {}) =>
    endpoint(name, { node: on, interfaceName: "*", profiles: ["allow"] }, labels);
  const policy = (name: string, spec: object): KubeObject => ({
    apiVersion: groupVersion(names.groups.stored),
    kind: names.kinds.globalNetworkPolicy.kind,
    metadata: { name: `default.${name}` },
    spec,
  });
  const plan = (v3: object, inputs: object = {}, more: object = {}) =>
    planHostEndpoints(observed({ names, v3, service: { datastore: "api" }, ...more }), { command, ...inputs });

  it("labels, enables and deletes, in this order, with the names of the dialect", () => {
    const { steps } = plan({
      hostEndpoints: [
        old("mine", "worker-1", { env: "prod" }),
        endpoint("eth", { node: "worker-1", interfaceName: "eth1" }),
      ],
    });
    expect(steps.map(({ id }) => id)).toEqual([
      "label-nodes",
      "enable-auto-host-endpoints",
      "delete-old-host-endpoints",
    ]);
    expect(steps[0]?.inputs).toEqual({ nodes: { "worker-1": { env: "prod" } } });
    expect(steps[1]?.inputs).toMatchObject({
      configuration: {
        apiVersion: groupVersion(names.groups.stored),
        kind: "KubeControllersConfiguration",
        name: "default",
      },
      patch: { spec: { controllers: { node: { hostEndpoint: { autoCreate: "Enabled" } } } } },
      nodes: { "control-plane": {}, "worker-1": { env: "prod" }, "worker-2": {} },
    });
    expect(steps[2]?.inputs).toEqual({
      endpoints: [{ apiVersion: groupVersion(names.groups.stored), kind: "HostEndpoint", name: "mine" }],
    });
  });

  it("takes for old what has neither the label nor the suffix, and is for all interfaces", () => {
    const { createdBy } = names.labels;
    const hostEndpoints = [
      old("labelled", "worker-1", { [createdBy.key]: createdBy.value }),
      old("other-auto-hep", "worker-1"),
      endpoint("by-address", { node: "worker-1", expectedIPs: ["10.0.0.1"] }),
      old("mine", "worker-1"),
    ];
    const { steps } = plan({ hostEndpoints });
    expect(steps.at(-1)?.inputs).toMatchObject({ endpoints: [{ name: "mine" }] });
  });

  it.each<[string, (n: Names) => object, RegExp]>([
    [
      "node and endpoint disagree",
      () => ({ hostEndpoints: [old("mine", "worker-1", { "kubernetes.io/os": "bsd" })] }),
      /kubernetes\.io\/os is "bsd" on host endpoint mine and "linux" on node worker-1/,
    ],
    [
      "two endpoints of a node disagree",
      () => ({ hostEndpoints: [old("a", "worker-1", { env: "prod" }), old("b", "worker-1", { env: "test" })] }),
      /env is "test" on host endpoint b and "prod" on host endpoint a/,
    ],
    ["a node is gone", () => ({ hostEndpoints: [old("mine", "lost")] }), /mine \(node lost\)/],
    [
      "a name is taken",
      () => ({ hostEndpoints: [old("worker-1-auto-hep", "worker-1")] }),
      /have the names of automatic ones: worker-1-auto-hep/,
    ],
    [
      "policies would bite",
      () => ({ globalNetworkPolicies: [policy("all", {})] }),
      /apply to nodes: all; these would be denied: kubelet \(TCP 10250\)/,
    ],
  ])("is refused where %s", (_title, v3, sentence) => {
    expect(() => plan(v3(names))).toThrow(sentence);
  });

  it("is refused on etcd, which no aggregated API and no controller of ours would follow", () => {
    expect(() => plan({}, {}, { service: { datastore: "etcd" } })).toThrow(/API datastore only/);
  });

  it("deletes the temporary policy last, with consent only, and judges what is left without it", () => {
    const rules = [{ action: "Allow" }];
    const temporary = policy("allow-all-upgrade", {
      order: 1,
      types: ["Ingress", "Egress"],
      ingress: rules,
      egress: rules,
    });
    const locked = policy("locked", { types: ["Ingress"] });
    const v3 = { globalNetworkPolicies: [temporary, locked] };
    expect(plan(v3, { acceptPolicies: true }).steps.map(({ id }) => id)).not.toContain("delete-temporary-policy");
    const { steps, notes } = plan(v3, { acceptPolicies: true, deleteTemporaryPolicy: true });
    expect(steps.at(-1)).toMatchObject({
      id: "delete-temporary-policy",
      inputs: { target: { name: "default.allow-all-upgrade" } },
    });
    expect(notes.join("\n")).toContain(
      "Without allow-all-upgrade: kubelet (TCP 10250) to worker-1, worker-2 would be denied by locked",
    );
  });

  it("gives Windows nodes none", () => {
    const nodes = [node("worker-1"), node("win", { operatingSystem: "windows" })];
    expect(plan({}, {}, { nodes }).steps[0]?.inputs["nodes"]).toEqual({ "worker-1": {} });
  });
});

describe.each(DIALECTS)("migrate owner-references, in the words of $dialect", ({ names }) => {
  const entry: OwnedThroughV3 = {
    apiVersion: "v1",
    kind: "ConfigMap",
    namespace: "shop",
    name: "notes",
    uid: "1",
    reference: { apiVersion: groupVersion(names.groups.served), kind: "NetworkPolicy", name: "web", uid: "2" },
  };
  const ids = (
    version: string,
    owned: OwnedThroughV3[],
    inputs: { phase?: "before" | "after"; saved?: OwnedThroughV3[] } = {},
  ) => {
    const { saved = [], ...rest } = inputs;
    return planOwnerReferences(observed({ names, owned, service: { version } }), { command, saved, ...rest }).steps.map(
      ({ id }) => id,
    );
  };
  const BEFORE = ["save-owner-references", "strip-owner-references"];
  const AFTER = ["restore-owner-references", "prove-owned-objects", "forget-owner-references"];

  it.each<[string, string[], () => string[]]>([
    ["nothing is owned", [], () => ids("v3.27.5", [])],
    [
      "both halves, with the upgrade elsewhere",
      [...BEFORE, "upgrade-elsewhere", ...AFTER],
      () => ids("v3.27.5", [entry]),
    ],
    ["the first half", BEFORE, () => ids("v3.27.5", [entry], { phase: "before" })],
    ["the second half", AFTER, () => ids("v3.31.3", [], { phase: "after", saved: [entry] })],
    ["the rest, where an earlier run was left in the middle", AFTER, () => ids("v3.31.3", [], { saved: [entry] })],
    ["nothing, where UIDs have changed already", [], () => ids("v3.31.3", [entry])],
  ])("%s", (_title, expected, made) => {
    expect(made()).toEqual(expected);
  });

  it("waits for the version where this dialect says it", () => {
    const { steps } = planOwnerReferences(observed({ names, owned: [entry], service: { version: "v3.27.5" } }), {
      command,
      saved: [],
    });
    const [until] = steps.find(({ id }) => id === "upgrade-elsewhere")!.inputs["until"] as {
      path: string[];
      matches: string;
    }[];
    expect(until?.path.join(".")).toBe(names.fields.clusterVersion);
    const matches = (version: string) => new RegExp(until!.matches).test(version);
    expect(["v3.27.9", "v3.9.1", "v2.31"].map(matches)).toEqual([false, false, false]);
    expect(["v3.28.0", "3.31.3", "v3.100.0", "v4.0"].map(matches)).toEqual([true, true, true, true]);
  });

  it("is refused where nobody knows which version runs", () => {
    expect(() => planOwnerReferences(observed({ names, owned: [entry] }), { command, saved: [] })).toThrow(
      /is unknown/,
    );
  });
});

it("migrate sidecars rolls what carries it, and names what nothing restarts", () => {
  const workload = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web" };
  const map = (config: string) => ({
    ...{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m", namespace: "n" } },
    data: { config },
  });
  const plan = (config: string) =>
    planSidecars(observed(), {
      meshVersion: "1.15",
      map: map(config),
      carriers: [{ workload, images: ["a"], annotations: {} }],
      bare: [{ namespace: "shop", name: "lonely" }],
      command,
    });
  const rolled = ["apply-injector-map", "roll-deployment-shop-web", "wait-deployment-shop-web"];
  const sidecar = { name: "vendor-policy-sidecar", image: "new" };
  const { steps, notes } = plan(JSON.stringify({ template: JSON.stringify({ containers: [sidecar], volumes: [] }) }));
  expect(steps.map(({ id }) => id)).toEqual(["start-canary", "prove-canary", "stop-canary", ...rolled]);
  expect(steps[0]?.inputs).toMatchObject({ objects: [{ spec: { template: { spec: { containers: [sidecar] } } } }] });
  const unread = plan(JSON.stringify({ template: "{{ range .Containers }}\n- {{ . }" }));
  expect(unread.steps.map(({ id }) => id)).toEqual(rolled);
  expect(unread.notes.join(" ")).toContain("cannot be proved before it is applied");
  expect(notes.join(" ")).toContain("keep their old sidecar until you replace them: shop/lonely.");
});
