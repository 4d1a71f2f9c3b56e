import { resolve } from "node:path";
import { describe, expect } from "vitest";
import { customResources, endpointMap, withFlowLogs } from "../support/operator-manifests.ts";
import { installOperator, runWithKubectl } from "../support/operator-scenario.ts";
import { type Contents, listEverything, untilQuiet } from "../support/operator-snapshot.ts";
import { untilAvailable } from "../support/operator-status.ts";

describe("removing all of it with kubectl", () => {
  const story = runWithKubectl({ kind: "generic" });
  const { step } = story;
  let before: Contents;

  step("a cluster, and everything there is on it", async () => {
    before = await untilQuiet(story.cluster.client);
    expect(before.size).toBeGreaterThan(50);
  });

  step(
    "the network with eBPF, the v3 API, flow logs and their page are installed, and the proxy is parked",
    async () => {
      const { kubectl, cluster } = story;
      await installOperator(story, "generic");
      const file = customResources("linuxDataplane: BPF").replace("Management: Disabled", "Management: Enabled");
      await kubectl.ok("create", "-f", kubectl.file("custom-resources.yaml", withFlowLogs(file)));
      for (const part of ["network", "ippools", "apiserver", "flow-logs", "flow-ui"]) {
        await untilAvailable(cluster.client, part);
      }
      await kubectl.ok("wait", "--for=condition=Available", "vendorstatus", "--all", "--timeout=60s");
      const mine = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "mine", namespace: "default" } };
      await cluster.client.create(await cluster.client.resourceFor(mine), mine);
      expect((await listEverything(cluster.client)).size).toBeGreaterThan(before.size + 80);
    },
  );

  step(
    "the custom resources are deleted, the last first; each takes along what it brought, and kubectl waits for it",
    async () => {
      const { kubectl, cluster } = story;
      const remove = (kind: string) => kubectl.ok("delete", kind, "default", "--timeout=60s");
      const has = async (name: string) => (await listEverything(cluster.client)).has(name);
      expect(await remove("flowui")).toBe('flowui.operator.vendor.io "default" deleted\n');
      expect(await has("Deployment vendor-system/vendor-flow-ui")).toBe(false);
      await remove("flowlogs");
      expect(await has("Deployment vendor-system/vendor-flow-logs")).toBe(false);
      await remove("apiserver.operator.vendor.io");
      expect(await has("APIService v3.vendor.io")).toBe(false);
      expect(await has("DaemonSet vendor-system/vendor-node")).toBe(true);
      await remove("installation");
      expect(await has("Namespace vendor-system")).toBe(false);
      const proxy = ["-n", "kube-system", "get", "daemonset", "kube-proxy", "-o"];
      expect(await kubectl.ok(...proxy, "jsonpath={.spec.template.spec.nodeSelector}")).toBe(
        '{"kubernetes.io/os":"linux"}',
      );
      expect(await kubectl.ok("get", "vendorstatus")).toBe("");
    },
  );

  step("then the operator, the endpoint map with its namespace, and at last the definitions", async () => {
    const { kubectl, cluster } = story;
    const map = kubectl.file("endpoint-map.yaml", endpointMap("generic", cluster) ?? "");
    await kubectl.ok("delete", "-f", map);
    // The namespace, which comes first, takes most of the rest along.
    await kubectl.ok("delete", "--ignore-not-found", "-f", resolve("manifests/vendor-operator.yaml"), "--timeout=60s");
    const left = lasting(await listEverything(cluster.client)).filter((name) => !before.has(name));
    expect(left.filter((name) => !/^(CustomResourceDefinition|APIService) /.test(name))).toEqual([
      "ConfigMap default/mine",
    ]);
    await kubectl.ok("delete", "-f", resolve("manifests/operator-crds.yaml"), "--timeout=60s");
  });

  step("nothing of ours is left, and nothing that was there before is gone", async () => {
    const after = await untilQuiet(story.cluster.client);
    expect(lasting(after).filter((name) => name !== "ConfigMap default/mine")).toEqual(lasting(before));
    const ours = [...after].filter(([name, object]) => /vendor/.test(name) || /vendor-operator/.test(labels(object)));
    expect(ours.map(([name]) => name)).toEqual([]);
  });
});

/** What the orchestrator makes and remakes for its own workloads has another name each time. */
function lasting(contents: Contents): string[] {
  return [...contents.keys()]
    .filter((name) => !/^(Pod|ReplicaSet|ControllerRevision|EndpointSlice) /.test(name))
    .sort();
}

function labels({ metadata }: { metadata: { labels?: Record<string, string> } }): string {
  return JSON.stringify(metadata.labels ?? {});
}
