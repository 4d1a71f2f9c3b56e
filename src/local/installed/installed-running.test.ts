import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { kubernetesKinds } from "../../apiserver/kubernetes/kinds.ts";
import { createApiServer } from "../../apiserver/server.ts";
import { type Client, createClient } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { CONFIG_MAPS, CRDS, NAMESPACES, PODS } from "../../cluster/kinds.ts";
import { startControllers } from "../controllers/start-controllers.ts";
import type { Pod } from "../controllers/workload-types.ts";
import { platformProfile } from "../platform-profile.ts";
import { startKubelet } from "../runtime/kubelet.ts";
import { simulatedRuntime } from "../runtime/simulated-runtime.ts";
import { eventually } from "../testing/bare-server.ts";
import { installedImageRules } from "./image-rules.ts";
import type { InstallMethod } from "./install-method.ts";
import { seedInstalled } from "./seed-installed.ts";

/** A cluster that runs: API server, controllers, garbage collector and two paper nodes. */
describe("an older installation in a running cluster", () => {
  let client: Client;
  let nodes: string[];
  let stop: () => Promise<void>;

  beforeEach(async () => {
    const server = await createApiServer({ kinds: kubernetesKinds() });
    const transport = server.transport();
    client = createClient(transport, { userAgent: "story" });
    const runtime = simulatedRuntime({ rules: installedImageRules });
    const generic = platformProfile("generic");
    const apiAddress = { host: "127.0.0.1", port: 6443 };
    const chosen = {
      name: "old",
      nodes: 2,
      oldNodes: 0,
      windowsNodes: 0,
      dualStack: false,
      proxy: undefined,
      apiAddress,
    };
    for (const object of generic.objects(chosen)) await client.create(await client.resourceFor(object), object);
    const kubelet = startKubelet({ transport, runtime });
    const controllers = startControllers({ transport });
    const specs = generic.nodes(chosen);
    for (const spec of specs) await kubelet.addNode(spec);
    await Promise.all([controllers.synced, kubelet.synced]);
    nodes = specs.map(({ name }) => name);
    stop = async () => {
      await Promise.all([controllers.stop(), kubelet.stop()]);
      await runtime.close();
      await server.close();
    };
  });
  afterEach(() => stop());

  const seed = (version: string, method: InstallMethod) =>
    seedInstalled(client, { version, method, kind: "generic", nodes });
  /** `2/2`, as `kubectl get pods` counts. */
  const ready = async (app: string, namespace: string) => {
    const { items } = await client.list<Pod>(PODS, { namespace, labelSelector: `k8s-app=${app}` });
    return items.map(({ status }) => {
      const all = status?.containerStatuses ?? [];
      return `${status?.phase} ${all.filter((container) => container.ready).length}/${all.length}`;
    });
  };
  const exists = (name: string) =>
    client.get(CONFIG_MAPS, { name, namespace: "shop" }).then(
      () => true,
      (error: unknown) => {
        if (!isNotFound(error)) throw error;
        return false;
      },
    );
  /** Something the collector must take: once it is gone, the collector has had its look at everything before it. */
  const collectorHasLooked = async () => {
    const uid = "11111111-1111-4111-8111-111111111111";
    const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "never-was", uid }];
    const orphan: KubeObject = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "orphan", namespace: "shop", ownerReferences },
    };
    await client.create(CONFIG_MAPS, orphan);
    await eventually(
      () => exists("orphan"),
      (there) => !there,
    );
  };

  it.each([
    ["manifest", "vendor-node", "kube-system", "Running 2/2"],
    ["manifest-canal", "vendor-overlay", "kube-system", "Running 2/2"],
    ["manifest-etcd", "vendor-node", "kube-system", "Running 1/2"],
    ["manifest-canal-etcd", "vendor-overlay", "kube-system", "Running 1/2"],
    ["operator", "vendor-node", "vendor-system", "Running 1/1"],
  ] as const)(
    "by %s shows its node pods as the specification's table does",
    async (method, app, namespace, expected) => {
      await seed("v3.27", method);
      await eventually(
        () => ready(app, namespace),
        (pods) => pods.length === 2 && pods.every((pod) => pod === expected),
      );
    },
  );

  it.each(["v3.19", "v3.27", "v3.28"])(
    "%s: what v3 resources own survives while nothing serves them: not knowing is no reason to collect",
    async (version) => {
      await seed(version, "operator");
      await collectorHasLooked();
      expect(await exists("allow-web-notes")).toBe(true);
      expect(await exists("metadata-review")).toBe(true);
    },
  );

  it("is the trap of an upgrade: once the owners are served under other UIDs, what they own is collected", async () => {
    await seed("v3.19", "operator");
    await client.create(CRDS, servedPolicies());
    const served = {
      group: "vendor.io",
      version: "v3",
      kind: "NetworkPolicy",
      plural: "networkpolicies",
      namespaced: true,
    };
    await client.create(served, {
      apiVersion: "vendor.io/v3",
      kind: "NetworkPolicy",
      metadata: { name: "allow-web", namespace: "shop" },
    });
    await eventually(
      () => exists("allow-web-notes"),
      (there) => !there,
    );
    expect(await exists("metadata-review")).toBe(true);
  });

  it("lets a namespace be deleted though its simulated aggregated API does not answer", async () => {
    await seed("v3.27", "operator");
    await client.delete(NAMESPACES, { name: "shop" });
    await eventually(
      () => client.list(NAMESPACES),
      ({ items }) => !items.some(({ metadata }) => metadata.name === "shop"),
    );
  });
});

/** Stands in for the aggregated API of a newer version: the same resource, under UIDs of its own. */
function servedPolicies(): KubeObject {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "networkpolicies.vendor.io" },
    spec: {
      group: "vendor.io",
      names: {
        kind: "NetworkPolicy",
        listKind: "NetworkPolicyList",
        plural: "networkpolicies",
        singular: "networkpolicy",
      },
      scope: "Namespaced",
      versions: [
        {
          name: "v3",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        },
      ],
    },
  };
}
