import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, NODES, PODS } from "../../src/cluster/kinds.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import type { Plan } from "../../src/procedures/plan.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { meshWorkload } from "../support/mesh-workload.ts";
import { type ClusterState, settledState, untilState } from "../support/procedure-state.ts";

/**
 * After an upgrade the sidecars are still the old ones, and that is no harm: an upgraded node component works with a down-level sidecar.
 * So the injector's map is changed first, and then workload after workload is restarted, each only when the one before runs.
 */

const MARK = "vendor.io/sidecar-injector";

describe("sidecars of application layer policy", () => {
  let cluster: LocalCluster;
  let tool: InProcessVendorctl;
  let before: ClusterState;
  beforeAll(async () => {
    cluster = await startCluster({ name: "mesh", kind: "generic", nodes: 2, cni: "preinstalled" });
    for (const name of ["mesh-system", "shop"]) {
      await cluster.client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
    }
    for (const name of ["cart", "web"]) await cluster.client.create(DEPLOYMENTS, meshWorkload(name, true));
    await cluster.client.create(DEPLOYMENTS, meshWorkload("plain", false));
    await cluster.client.create(CONFIG_MAPS, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "mesh-sidecar-injector", namespace: "mesh-system" },
      data: { config: "policy: enabled\n", values: "kept" },
    } as KubeObject);
    tool = inProcessVendorctl(cluster.kubeconfig);
    before = await settledState(cluster.client);
  });
  afterAll(async () => {
    tool.close();
    await cluster.close();
  });
  const annotationOf = async (name: string) => {
    const { spec } = (await cluster.client.get(DEPLOYMENTS, { name, namespace: "shop" })) as unknown as {
      spec: { template: { metadata: { annotations?: Record<string, string> } } };
    };
    return spec.template.metadata.annotations?.[MARK];
  };

  /** New pods start nowhere. */
  const cordoned = async (unschedulable: boolean) => {
    const patch = { spec: { unschedulable: unschedulable || null } };
    for (const name of cluster.nodeNames) await cluster.client.patch(NODES, { name }, { type: "merge", patch });
  };

  it("a version of the mesh the release does not know is refused, and the known ones are named", async () => {
    const { exit, err } = await tool.run("migrate", "sidecars", "--mesh-version", "1.99", "-y");
    expect(exit).toBe(64);
    expect(err).toContain(
      "the release (built in) has no sidecar injector for mesh version 1.99 [MESH_VERSION_UNKNOWN]",
    );
    expect(err).toContain("give --mesh-version one of 1.1.0, 1.5, 1.10, 1.15");
  });

  it("the plan says which workloads are restarted, in which order, and why that is safe", async () => {
    const plan = await tool.ok("plan", "migrate", "sidecars", "--mesh-version", "1.15");
    expect(plan).toContain("An upgraded node agent works with an older sidecar");
    const { steps } = JSON.parse(
      await tool.ok("plan", "migrate", "sidecars", "--mesh-version", "1.15", "-o", "json"),
    ) as Plan;
    expect(steps.map(({ title, where }) => `${title} ${where}`)).toEqual([
      ...["Start a pod with the new sidecar", "Wait until its sidecar answers", "Delete the pod"].map(
        (title) => `${title} Deployment mesh-system/vendor-policy-sidecar-canary`,
      ),
      "Apply the injector map of mesh 1.15 ConfigMap mesh-system/mesh-sidecar-injector",
      ...["Restart the workload Deployment shop/cart", "Wait for the new sidecar Deployment shop/cart"],
      ...["Restart the workload Deployment shop/web", "Wait for the new sidecar Deployment shop/web"],
    ]);
    expect(plan).not.toContain("shop/plain");
  });

  it("a sidecar that does not become ready stops the run before anything in use is changed", async () => {
    const map = () => cluster.client.get(CONFIG_MAPS, { name: "mesh-sidecar-injector", namespace: "mesh-system" });
    const unchanged = await map();
    await cordoned(true);
    const { exit, err } = await tool.run("migrate", "sidecars", "--mesh-version", "1.15", "-y", "--timeout", "3s");
    await cordoned(false);
    expect(exit).not.toBe(0);
    expect(err).toContain("vendor-policy-sidecar-canary");
    expect((await map())["data"]).toEqual(unchanged["data"]);
    expect(await annotationOf("web")).toBeUndefined();
    await tool.ok("rollback", "-y");
    expect(await untilState(cluster.client, before)).toEqual([]);
  });

  it("the map is applied, then each workload rolls and runs again", async () => {
    const pods = async () =>
      new Set((await cluster.client.list(PODS, { namespace: "shop" })).items.map(({ metadata }) => metadata.uid));
    const old = await pods();
    await tool.ok("migrate", "sidecars", "--mesh-version", "1.15", "-y");
    const map = await cluster.client.get<KubeObject>(CONFIG_MAPS, {
      name: "mesh-sidecar-injector",
      namespace: "mesh-system",
    });
    expect(map.metadata.labels).toMatchObject({ "mesh-version": "1.15" });
    expect(map["data"]).toMatchObject({ config: expect.stringContaining("vendor-policy-sidecar"), values: "kept" });
    expect(await annotationOf("web")).toBe(await annotationOf("cart"));
    expect(await annotationOf("plain")).toBeUndefined();
    const kept = [...(await pods())].filter((uid) => old.has(uid));
    expect(kept).toHaveLength(1);
  });

  it("the second time nothing is restarted", async () => {
    const plan = JSON.parse(await tool.ok("plan", "migrate", "sidecars", "--mesh-version", "1.15", "-o", "json"));
    const ids = ["start-canary", "prove-canary", "stop-canary", "apply-injector-map"];
    expect(plan.steps.map(({ id }: { id: string }) => id)).toEqual(ids);
    expect(plan.notes.join("\n")).toContain("2 workloads have been restarted with this ConfigMap already");
  });

  it("it is taken back like everything else", async () => {
    await tool.ok("rollback", "-y");
    expect(await untilState(cluster.client, before)).toEqual([]);
  });
});
