import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect } from "vitest";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../src/api/object.ts";
import { describeKind } from "../support/kind-scenario.ts";

/** A file of the public system with Typha, in the parts that matter: as it was written for older Kubernetes, and as it is now. */
const file = (version: string, from: { registry: string; budgets: string; fields: string }) => `---
apiVersion: ${from.budgets}
kind: PodDisruptionBudget
metadata: { name: calico-typha, namespace: kube-system }
spec: { maxUnavailable: 1, selector: { matchLabels: { k8s-app: calico-typha } } }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: calico-config, namespace: kube-system }
data: { calico_backend: bird, typha_service_name: calico-typha }
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: felixconfigurations.crd.projectcalico.org }
spec:
  group: crd.projectcalico.org
  names: { kind: FelixConfiguration, plural: felixconfigurations, singular: felixconfiguration, listKind: FelixConfigurationList }
  scope: Cluster
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object, properties: { spec: { type: object, properties: { ${from.fields} } } } } }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: calico-typha, namespace: kube-system }
spec:
  replicas: 1
  selector: { matchLabels: { k8s-app: calico-typha } }
  template:
    metadata: { labels: { k8s-app: calico-typha } }
    spec:
      containers: [{ name: calico-typha, image: "${from.registry}/typha:${version}" }]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: { name: calico-node, namespace: kube-system }
spec:
  selector: { matchLabels: { k8s-app: calico-node } }
  template:
    metadata: { labels: { k8s-app: calico-node } }
    spec:
      containers: [{ name: calico-node, image: "${from.registry}/node:${version}" }]
      volumes:
        - name: etcd-certs
          secret: { secretName: calico-etcd-secrets, defaultMode: 0400 }
`;
const OLD = {
  registry: "docker.io/calico",
  budgets: "policy/v1beta1",
  fields: "logPrefix: { type: string }, old: { type: string }",
};
const NEW = { registry: "quay.io/calico", budgets: "policy/v1", fields: "logPrefix: { type: string }" };
const MIRROR = "registry.corp.example/mirror/calico";

describe("a plain manifest of the public system with Typha, from a private registry", () => {
  const story = describeKind({ kind: "generic", cni: "preinstalled" });
  let url: string;

  beforeAll(async () => {
    const releases = story.file("releases");
    for (const [version, from] of [
      ["v3.20.6", OLD],
      ["v3.31.3", NEW],
    ] as const) {
      const folder = join(releases, version, "manifests");
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "calico-typha.yaml"), file(version, from));
    }
    url = `file://${releases}/v3.31.3`;
    // Kubernetes 1.25 went on serving the budget as policy/v1, and the person had moved the images.
    const text = file("v3.20.6", { ...OLD, registry: MIRROR, budgets: "policy/v1" });
    const { client } = story.cluster;
    const create = async (object: KubeObject) =>
      client.apply(await client.resourceFor(object), object, { fieldManager: "kubectl-create" });
    for (const document of parseAllDocuments(text, { version: "1.1" })) await create(document.toJS() as KubeObject);
    const apiVersion = "crd.projectcalico.org/v1";
    await create({ apiVersion, kind: "FelixConfiguration", metadata: { name: "default" }, spec: { old: "a" } });
  });

  story.step(
    "is planned with the file that has Typha: nothing clashes, images stay in the registry, modes are octal",
    async () => {
      const { plan, steps } = await story.plan("--names", "calico", "upgrade", "--manifest-url", url);
      expect(steps).toEqual(expect.arrayContaining(["manifest", "typha-updated", "nodes-updated"]));
      expect(plan.components).toContainEqual({
        ...{ component: "Deployment kube-system/calico-typha", current: "v3.20.6", target: "v3.31.3" },
      });
      const text = JSON.stringify(plan.steps.find(({ id }) => id === "manifest")?.inputs["objects"]);
      expect(text).toContain(`${MIRROR}/typha:v3.31.3`);
      expect(text).toContain(`${MIRROR}/node:v3.31.3`);
      expect(text).toContain('"defaultMode":256');
      expect(plan.inventory).toMatchObject([{ name: "FelixConfiguration.spec.old", fate: "lost" }]);
    },
  );

  story.step("is not run while a loss is not accepted", async () => {
    const { exit, err } = await story.run("--names", "calico", "upgrade", "-y", "--manifest-url", url);
    expect({ exit, err }).toEqual({
      exit: 3,
      err: expect.stringContaining("--accept-loss FelixConfiguration.spec.old"),
    });
  });
});
