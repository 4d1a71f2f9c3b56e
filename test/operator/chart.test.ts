import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { CRDS, DEPLOYMENTS, PODS } from "../../src/cluster/kinds.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { type ChartRelease, hasHelm, helmRelease, releaseWithoutHelm } from "../support/chart-release.ts";
import { type Contents, listEverything, untilQuiet } from "../support/operator-snapshot.ts";
import { untilAvailable } from "../support/operator-status.ts";

const OPERATOR = { namespace: "vendor-operator", name: "vendor-operator" };
/** What helm leaves: CRDs with their groups, and the namespace with what Kubernetes puts into each. Slices follow pods; kube-proxy has new pods, since it was disabled. */
const STAYS =
  /^(?:CustomResourceDefinition |APIService v1\.(?:crd|operator)\.vendor\.io$|EndpointSlice kube-system\/|(?:Pod|ControllerRevision) kube-system\/kube-proxy-|Namespace vendor-operator$|(?:ServiceAccount|ConfigMap) vendor-operator\/(?:default|kube-root-ca.crt)$|Lease vendor-operator\/)/;

const TOOLS = [
  { by: "a release without helm", skip: false, open: ({ client }: LocalCluster) => releaseWithoutHelm(client) },
  {
    by: `helm${hasHelm ? "" : " (needs helm)"}`,
    skip: !hasHelm,
    open: (_cluster: LocalCluster, kubeconfig: string) => helmRelease(kubeconfig),
  },
];

for (const { by, skip, open } of TOOLS) {
  describe.skipIf(skip)(`the chart alone, by ${by}`, () => {
    let cluster: LocalCluster;
    let release: ChartRelease;
    let before: Contents;
    const home = mkdtempSync(join(tmpdir(), "chart-release-"));
    beforeAll(async () => {
      cluster = await startCluster({ name: "chart", kind: "generic", nodes: 2 });
      writeFileSync(join(home, "kubeconfig"), cluster.kubeconfig);
      release = open(cluster, join(home, "kubeconfig"));
      before = await untilQuiet(cluster.client);
    });
    afterAll(async () => {
      await cluster.close();
      rmSync(home, { recursive: true });
    });
    const scale = (replicas: number) =>
      cluster.client.patch(DEPLOYMENTS, OPERATOR, { type: "merge", patch: { spec: { replicas } } });

    it("installs the network on an empty cluster", async () => {
      await release.install();
      for (const part of ["network", "ippools", "apiserver"]) await untilAvailable(cluster.client, part);
      expect((await cluster.client.list(CRDS)).items.length).toBeGreaterThan(10);
    });

    it("is not uninstalled while no operator runs: the Job fails with the reason, and the operator stays", async () => {
      await scale(0);
      await expect(release.uninstall()).rejects.toThrow(/vendor-operator-pre-delete.* [Ff]ailed/);
      const { items } = await cluster.client.list<KubeObject>(PODS, {
        namespace: OPERATOR.namespace,
        labelSelector: "k8s-app=vendor-operator-pre-delete",
      });
      expect(items.map(({ status }) => (status as { phase: string }).phase)).toEqual(["Failed"]);
      await expect(cluster.client.get(DEPLOYMENTS, OPERATOR)).resolves.toBeDefined();
    });

    it("uninstalls when the operator runs again, and leaves CRDs and the namespace", async () => {
      await scale(1);
      await release.uninstall();
      const left = async () =>
        [...(await listEverything(cluster.client)).keys()].filter((name) => !before.has(name) && !STAYS.test(name));
      await expect.poll(left).toEqual([]);
    });
  });
}
