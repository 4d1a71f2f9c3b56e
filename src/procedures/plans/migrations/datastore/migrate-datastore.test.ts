import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { calicoNames } from "../../../../api/names.ts";
import type { KubeObject } from "../../../../api/object.ts";
import type { Observation } from "../../../observation.ts";
import { type Differently, observed } from "../../../testing/observed.ts";
import { manifestObjects } from "../../install/edit-manifest.ts";
import type { ManifestWorkload } from "../operator/manifest-view.ts";
import { withBoth } from "./both-datastores.ts";
import { etcdPlaceOf } from "./etcd-place.ts";
import { planDropOldData, planMigrateDatastore, refuseUnmigratable } from "./migrate-datastore.ts";

const objectsOf = (file: string): KubeObject[] =>
  manifestObjects(file, readFileSync(new URL(`../../../../../manifests/${file}`, import.meta.url), "utf8")).filter(
    ({ kind }) => kind !== "CustomResourceDefinition",
  );

const agents = ["control-plane", "worker-1", "worker-2"].map((node) => ({
  ...{ node, pod: `vendor-node-${node}`, phase: "Running", ready: "1/2", report: {} },
})) as unknown as Observation["service"]["agents"];

const settingsOf = (file: string, endpoints: string) => {
  const map = objectsOf(file).find(({ kind }) => kind === "ConfigMap")!;
  return { ...map, data: { ...(map["data"] as object), etcd_endpoints: endpoints } } as KubeObject;
};

function cluster(file: string, service: Differently["service"] = {}): Observation {
  const nodeAgents = objectsOf(file).find(({ kind }) => kind === "DaemonSet");
  const variant = file.includes("overlay") ? "overlay" : "networking";
  const settings = settingsOf(file, "https://10.0.0.1:2379,https://10.0.0.2:2379");
  const seen = {
    method: "manifest",
    datastore: "etcd",
    version: "v3.31.3",
    variant,
    nodeAgents,
    agents,
    settings,
  } as const;
  return observed({ service: { ...seen, ...service } });
}

function planned(file: string, target: string, size = 1) {
  const observation = cluster(file);
  return planMigrateDatastore(
    observation,
    {
      ...{ etcd: etcdPlaceOf(observation), revision: 40, counts: { IPPool: 1, Tier: 2 }, ready: true, file, target },
      ...{ objects: objectsOf(target), live: objectsOf(file), edits: [], appliers: ["kubectl"], takeOvers: [] },
      ...{ definitions: { name: target, from: "built in", digest: "sha256:1" }, found: [], fresh: true, leave: [] },
    },
    { command: "vendorctl migrate datastore", waves: { size: { nodes: size }, serving: [] } },
  );
}

type Planned = ReturnType<typeof planned>;
const step = (plan: Planned, id: string) => plan.steps.find((one) => one.id === id)!;
const objectsIn = (plan: Planned, id: string) => step(plan, id).inputs["objects"] as KubeObject[];

describe("what is not migrated is refused by its name", () => {
  it.each<[string, Observation, string]>([
    ["nothing installed", observed(), "the service is not installed"],
    ["an operator's installation", cluster("vendor-etcd.yaml", { method: "operator" }), "installed by operator"],
    [
      "the Kubernetes datastore",
      cluster("vendor-etcd.yaml", { datastore: "api" }),
      "on the Kubernetes datastore already",
    ],
    ["an older release", cluster("vendor-etcd.yaml", { version: "v3.27.5" }), "the cluster runs v3.27.5"],
    [
      "another line of the public system",
      { ...cluster("vendor-etcd.yaml", { version: "v3.30.2" }), names: calicoNames },
      "this tool migrates v3.31.x",
    ],
    [
      "flannel's subnets in etcd",
      { ...cluster("vendor-overlay-etcd.yaml", { version: "v3.31.5" }), names: calicoNames },
      "flannel has its subnets in etcd",
    ],
  ])("%s", (_what, observation, sentence) => {
    expect(() => refuseUnmigratable(observation)).toThrow(sentence);
  });

  it.each<[string, string]>([
    ["without addresses", ""],
    ["as published, with the address to be filled in", "https://<ETCD_IP>:<ETCD_PORT>"],
  ])("a manifest %s", (_what, endpoints) => {
    const settings = settingsOf("vendor-etcd.yaml", endpoints);
    expect(() => etcdPlaceOf(cluster("vendor-etcd.yaml", { settings }))).toThrow("ETCD_ENDPOINTS cannot be read");
  });

  it("dropping data that did not move", () => {
    const command = "vendorctl migrate datastore --drop-old-data";
    const onKubernetes = cluster("vendor-etcd.yaml", { datastore: "api" });
    expect(() => planDropOldData(onKubernetes, undefined, { command })).toThrow("no old data");
  });
});

it.each(["vendor-etcd.yaml", "vendor-overlay-etcd.yaml"])(
  "%s says where etcd is, and where its certificates are",
  (file) => {
    expect(etcdPlaceOf(cluster(file))).toEqual({
      endpoints: ["https://10.0.0.1:2379", "https://10.0.0.2:2379"],
      secret: { namespace: "kube-system", name: "vendor-etcd-secrets" },
      files: { ca: "etcd-ca", cert: "etcd-cert", key: "etcd-key" },
      user: {
        secret: { namespace: "kube-system", name: "vendor-etcd-secrets" },
        name: "etcd-username",
        password: "etcd-password",
      },
    });
  },
);

it.each<[string, object[], string | undefined]>([
  ["of an earlier manifest", [], undefined],
  ["of an etcd without users", [{ name: "ETCD_USERNAME", value: "" }], undefined],
  [
    "with a password as plain text, which a plan would hold",
    [
      { name: "ETCD_USERNAME", value: "vendor" },
      { name: "ETCD_PASSWORD", value: "correct horse" },
    ],
    "not from keys of one Secret",
  ],
])("a manifest %s", (_what, env, refusal) => {
  const seen = cluster("vendor-etcd.yaml");
  const agents = structuredClone(seen.service.nodeAgents) as unknown as ManifestWorkload;
  const agent = agents.spec.template.spec.containers.find(({ name }) => name === "vendor-node")!;
  const others = (agent.env ?? []).filter(({ name }) => !["ETCD_USERNAME", "ETCD_PASSWORD"].includes(name));
  Object.assign(agent, { env: [...others, ...env] });
  const place = () => etcdPlaceOf(cluster("vendor-etcd.yaml", { nodeAgents: agents }));
  if (refusal === undefined) expect(place().user).toBeUndefined();
  else expect(place).toThrow(refusal);
});

describe.each([
  ["vendor-etcd.yaml", "vendor.yaml"],
  ["vendor-overlay-etcd.yaml", "vendor-overlay.yaml"],
])("the plan from %s", (file, target) => {
  const plan = planned(file, target);

  it("holds the lock from the copy until the last agent has switched, and no longer", () => {
    expect(plan.steps.map(({ id }) => id)).toEqual([
      ...["save-service", "definitions", "rights", "adopt-fields", "lock", "import", "hold-agents", "manifest"],
      ...["switch-canary", "switch-wave-1", "switch-wave-2", "open"],
      ...[
        "controllers",
        "vendor-kube-controllers-ready",
        "agents-ready",
        "settings",
        "verify-version",
        "keep-old-data",
      ],
    ]);
    expect(plan.steps.filter(({ reversible }) => reversible !== true)).toEqual([]);
  });

  it("leaves agents on etcd what they need until none is left", () => {
    const [settings, last] = ["manifest", "settings"].map((id) =>
      objectsIn(plan, id).find(({ kind }) => kind === "ConfigMap"),
    );
    expect(settings?.["data"]).toHaveProperty("etcd_endpoints");
    expect(last?.["data"]).not.toHaveProperty("etcd_endpoints");
    const daemonSet = objectsIn(plan, "manifest").find(({ kind }) => kind === "DaemonSet");
    expect(daemonSet?.["spec"]).toMatchObject({ updateStrategy: { type: "OnDelete" } });
    expect(objectsIn(plan, "manifest").filter(({ kind }) => kind === "Deployment")).toEqual([]);
    const role = (id: string) =>
      objectsIn(plan, id).find(({ kind, metadata }) => kind === "ClusterRole" && /controllers/.test(metadata.name));
    expect(JSON.stringify(role("rights"))).toContain("networkpolicies");
    expect(JSON.stringify(role("rights"))).toContain("ipamblocks");
    expect(JSON.stringify(role("settings"))).not.toContain("networkpolicies");
  });

  it("says for how long new pods wait", () => {
    expect(plan.notes.join("\n")).toMatch(
      /3 objects at revision 40: 1 IPPool, 2 Tier[\s\S]*for about \d+ s, new pods wait/,
    );
  });
});

it("the old data is dropped without an undo, the Secret after it", () => {
  const etcd = etcdPlaceOf(cluster("vendor-etcd.yaml"));
  const seen = cluster("vendor-etcd.yaml", { datastore: "api" });
  const plan = planDropOldData(seen, etcd, { command: "vendorctl migrate datastore --drop-old-data" });
  expect(plan.steps.map(({ id, reversible }) => [id, reversible === true])).toEqual([
    ["drop-old-data", false],
    ["etcd-secret", true],
  ]);
});

it("rights of both are rules of both, each once", () => {
  const role = (...verbs: string[]) =>
    ({ kind: "ClusterRole", metadata: { name: "a" }, rules: verbs.map((verb) => ({ verbs: [verb] })) }) as never;
  expect(withBoth([role("get", "list")], [role("list", "watch")])).toEqual([role("get", "list", "watch")]);
});
