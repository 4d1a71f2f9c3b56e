import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { calicoNames } from "../../../../api/names.ts";
import type { KubeObject } from "../../../../api/object.ts";
import type { Observation } from "../../../observation.ts";
import { type Differently, observed } from "../../../testing/observed.ts";
import { manifestObjects } from "../../install/edit-manifest.ts";
import { planMigrateOperator, refuseUnmigratable } from "./migrate-operator.ts";

const objectsOf = (file: string): KubeObject[] =>
  manifestObjects(file, readFileSync(new URL(`../../../../../manifests/${file}`, import.meta.url), "utf8")).filter(
    ({ kind }) => kind !== "CustomResourceDefinition",
  );

const agents = ["control-plane", "worker-1", "worker-2"].map((node) => ({
  ...{ node, pod: `vendor-node-${node}`, phase: "Running", ready: "2/2", report: {} },
})) as unknown as Observation["service"]["agents"];

function cluster(file: string, service: Differently["service"] = {}): Observation {
  const nodeAgents = objectsOf(file).find(({ kind }) => kind === "DaemonSet");
  const variant = file === "vendor-overlay.yaml" ? "overlay" : "networking";
  const seen = { method: "manifest", datastore: "api", version: "v3.31.3", variant, nodeAgents, agents } as const;
  return observed({ service: { ...seen, ...service } });
}

function planned(file: string, service: Differently["service"] = {}) {
  return planMigrateOperator(
    cluster(file, service),
    {
      file,
      objects: objectsOf(file),
      edits: [],
      definitions: { name: "operator-crds.yaml", from: "built in", digest: "sha256:1" },
      operator: objectsOf("vendor-operator.yaml"),
    },
    { command: "vendorctl migrate operator", waves: { size: { nodes: 1 }, serving: [] } },
  );
}

const inputsOf = (plan: ReturnType<typeof planned>, id: string) => plan.steps.find((step) => step.id === id)!.inputs;
const targets = (plan: ReturnType<typeof planned>) =>
  (inputsOf(plan, "remove-manifest")["targets"] as { kind: string; name: string }[]).map(
    ({ kind, name }) => `${kind} ${name}`,
  );

describe("what is not migrated is refused by its name", () => {
  it.each<[string, Observation, string]>([
    ["nothing installed", observed(), "the service is not installed"],
    ["an operator's installation", cluster("vendor.yaml", { method: "operator" }), "installed by operator already"],
    ["etcd", cluster("vendor.yaml", { datastore: "etcd" }), "vendor-etcd.yaml keeps policies"],
    ["etcd with an overlay", cluster("vendor-overlay.yaml", { datastore: "etcd" }), "vendor-overlay-etcd.yaml keeps"],
    ["an older release", cluster("vendor.yaml", { version: "v3.27.5" }), "the cluster runs v3.27.5"],
    ["the public overlay", { ...cluster("vendor-overlay.yaml"), names: calicoNames }, "does not migrate canal.yaml"],
  ])("%s", (_what, observation, sentence) => {
    expect(() => refuseUnmigratable(observation)).toThrow(sentence);
  });
});

describe("the plan", () => {
  it("makes everything before the first node moves, the canary node first, and removes the manifest last", () => {
    expect(planned("vendor.yaml").steps.map(({ id }) => id)).toEqual([
      ...["keep-rights", "save-service", "label-nodes", "hold-agents", "definitions", "stop-controllers"],
      ...["custom-resources", "operator", "operator-ready", "agents-rendered"],
      ...["move-canary", "move-wave-1", "move-wave-2", "complete", "remove-manifest", "verify-version"],
    ]);
    expect(inputsOf(planned("vendor.yaml"), "move-canary")["nodes"]).toEqual(["worker-1"]);
  });

  it("removes what only the manifest has, and leaves what the operator has taken over", () => {
    const removed = targets(planned("vendor.yaml"));
    expect(removed).toContain("DaemonSet vendor-node");
    expect(removed).toContain("ClusterRole vendor-node-before-operator");
    expect(removed).toContain("ConfigMap vendor-config");
    expect(removed).not.toContain("ClusterRole vendor-node");
    expect(removed).not.toContain("CSIDriver csi.vendor.io");
  });

  it("keeps an overlay in a DaemonSet of its own, with its account and its settings", () => {
    const plan = planned("vendor-overlay.yaml");
    const [overlay] = inputsOf(plan, "overlay")["objects"] as {
      spec: { template: { spec: { containers: { name: string }[] } } };
    }[];
    expect(overlay?.spec.template.spec.containers.map(({ name }) => name)).toEqual(["overlay"]);
    expect((inputsOf(plan, "move-canary")["to"] as { name: string }[]).map(({ name }) => name)).toEqual([
      "vendor-node",
      "vendor-overlay-network",
    ]);
    const removed = targets(plan);
    expect(removed).toContain("DaemonSet vendor-overlay");
    expect(removed.filter((name) => /ConfigMap|ServiceAccount vendor-overlay/.test(name))).toEqual([]);
  });

  it("lists pools that the operator accepts, and leaves the others as they are", () => {
    const pool = (name: string, cidr: string): KubeObject => ({
      apiVersion: "crd.vendor.io/v1",
      kind: "IPPool",
      metadata: { name },
      spec: { cidr, vxlanMode: "Always", natOutgoing: true },
    });
    const plan = planned("vendor.yaml", {
      pools: [pool("inside", "10.244.0.0/17"), pool("outside", "192.168.0.0/16")],
    });
    const [installation] = inputsOf(plan, "custom-resources")["objects"] as { spec: object }[];
    expect(installation?.spec).toMatchObject({ vendorNetwork: { ipPools: [{ name: "inside" }] } });
    expect(plan.notes.join("\n")).toContain("IPPool outside stays as it is");
  });

  it("has the operator pull its image, and find the API server, as the manifest does", () => {
    const [agent] = [objectsOf("vendor.yaml").find(({ kind }) => kind === "DaemonSet")];
    const text = JSON.stringify(agent).replaceAll("registry.vendor.io/vendor", "mirror.example.com/net");
    const endpointMap: KubeObject = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "orchestrator-services-endpoint", namespace: "kube-system" },
      data: { ORCHESTRATOR_SERVICE_HOST: "10.0.0.1", ORCHESTRATOR_SERVICE_PORT: "6443" },
    };
    const plan = planned("vendor.yaml", { nodeAgents: JSON.parse(text) as KubeObject, endpointMap });
    const objects = inputsOf(plan, "operator")["objects"] as KubeObject[];
    expect(JSON.stringify(objects.at(-1))).toContain("mirror.example.com/net/vendor:v3.31.3");
    expect(objects.find(({ kind }) => kind === "ConfigMap")).toMatchObject({
      metadata: { namespace: "vendor-operator" },
      data: { ORCHESTRATOR_SERVICE_HOST: "10.0.0.1" },
    });
  });
});
