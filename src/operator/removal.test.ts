import { afterEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { NAMESPACES, NODES } from "../cluster/kinds.ts";
import { storedKind } from "./managed-kinds.ts";
import { allObjectsOf, type OperatorLab, operatorLab } from "./testing/operator-lab.ts";

let world: OperatorLab;
afterEach(() => world.stop());

const gone = async () => (await world.get(storedKind("installation"), { name: "default" })) === undefined;

async function installAll(): Promise<void> {
  await world.installation({ vendorNetwork: { linuxDataplane: "BPF", serviceProxyManagement: "Enabled" } });
  for (const noun of ["apiServer", "flowLogs", "flowUI"] as const) await world.request(noun);
  for (const part of ["network", "ippools", "apiserver", "flow-logs", "flow-ui", "service-proxy"]) {
    await world.untilStatus(part, "Available");
  }
}

describe("removal", () => {
  it("of all resources leaves the cluster as it was before, whatever was deleted first", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.settled();
    const before = await allObjectsOf(world.kubectl);
    await installAll();
    expect((await allObjectsOf(world.kubectl)).length).toBeGreaterThan(before.length + 30);
    // As an agent does.
    const patch = { metadata: { annotations: { "vendor.io/dataplane": "BPF", mine: "stays" } } };
    await world.kubectl.patch(NODES, { name: "node-0" }, { type: "merge", patch });
    for (const noun of ["installation", "apiServer", "flowLogs", "flowUI"] as const) {
      await world.kubectl.delete(storedKind(noun), { name: "default" });
    }
    await world.until(gone, (is) => is);
    expect((await world.get(NODES, { name: "node-0" }))?.metadata.annotations).toEqual({ mine: "stays" });
    await world.until(
      () => allObjectsOf(world.kubectl),
      (now) => now.join() === before.join(),
    );
  });

  it("drops the installation's finalizer last: who waits for that may remove the operator", async () => {
    world = await operatorLab();
    world.startOperator();
    await installAll();
    for (const noun of ["flowUI", "flowLogs", "apiServer"] as const) {
      const request = { kind: storedKind(noun), name: "default" };
      await world.kubectl.delete(request.kind, request);
      await world.until(
        () => world.get(request.kind, request),
        (object) => object === undefined,
      );
    }
    await world.kubectl.delete(storedKind("installation"), { name: "default" });
    await world.until(gone, (is) => is);
    await world.settled();
    expect(world.writes.at(-1)).toMatch(/^PATCH .*\/installations\/default/);
  });

  it("takes the aggregated API back before its pods, and rights only after the pods that use them", async () => {
    world = await operatorLab();
    world.startOperator();
    await installAll();
    const start = world.writes.length;
    for (const noun of ["installation", "apiServer", "flowLogs", "flowUI"] as const) {
      await world.kubectl.delete(storedKind(noun), { name: "default" });
    }
    await world.until(gone, (is) => is);
    const deletes = world.writes.slice(start).filter((write) => write.startsWith("DELETE"));
    const at = (text: string) => deletes.findIndex((write) => write.includes(text));
    const order = [
      "apiservices/v3.vendor.io",
      "deployments/vendor-apiserver",
      "deployments/vendor-kube-controllers",
      "daemonsets/vendor-node",
      "clusterroles/vendor-node",
      "namespaces/vendor-system",
    ];
    const places = order.map((text) => deletes.findIndex((write) => write.endsWith(text)));
    expect(places).not.toContain(-1);
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(at("deployments/vendor-apiserver")).toBeLessThan(at("services/vendor-api"));
    const proxy = await world.get<KubeObject>(
      { group: "apps", version: "v1", kind: "DaemonSet", plural: "daemonsets", namespaced: true },
      { namespace: "kube-system", name: "kube-proxy" },
    );
    expect(JSON.stringify(proxy?.["spec"])).not.toContain("non-vendor");
  });

  it("of the installation alone takes the optional parts with it, and their resources wait for another", async () => {
    world = await operatorLab();
    world.startOperator();
    await installAll();
    await world.kubectl.delete(storedKind("installation"), { name: "default" });
    await world.until(gone, (is) => is);
    expect(await world.get(NAMESPACES, { name: "vendor-system" })).toBeUndefined();
    const status = await world.untilStatus("apiserver", "Progressing");
    expect(status.message).toBe("Waiting for an Installation named default.");
    await world.installation({ vendorNetwork: { linuxDataplane: "Nftables" } });
    for (const part of ["network", "apiserver", "flow-logs", "flow-ui"]) await world.untilStatus(part, "Available");
  });

  it("takes what our programs made and nobody else touched, and leaves what people made", async () => {
    world = await operatorLab();
    const profile = storedKind("profile");
    const make = async (name: string, manager: string) => {
      const object = { apiVersion: "crd.vendor.io/v1", kind: profile.kind, metadata: { name }, spec: {} };
      await world.kubectl.apply(profile, object, { fieldManager: manager });
    };
    world.startOperator();
    await world.installation({ vendorNetwork: { linuxDataplane: "Nftables" } });
    await world.untilStatus("network", "Available");
    await make("kns.team", "vendor-kube-controllers");
    await make("mine", "kubectl");
    await make("kns.shared", "vendor-kube-controllers");
    await world.kubectl.patch(
      profile,
      { name: "kns.shared" },
      { type: "merge", patch: { metadata: { labels: { a: "b" } } } },
    );
    await world.kubectl.delete(storedKind("installation"), { name: "default" });
    await world.until(gone, (is) => is);
    const left = (await world.kubectl.list(profile)).items.map(({ metadata }) => metadata.name);
    expect(left).toEqual(["kns.shared", "mine"]);
  });

  it("leaves the user's own fields of the data plane configuration, and pools somebody else had made", async () => {
    world = await operatorLab();
    const config = storedKind("dataplaneConfiguration");
    const pool = storedKind("ipPool");
    const type = { apiVersion: "crd.vendor.io/v1" };
    await world.kubectl.create(config, {
      ...type,
      kind: config.kind,
      metadata: { name: "default" },
      spec: { vxlanMTU: 1400 },
    });
    const spec = { cidr: "10.9.0.0/16", vxlanMode: "CrossSubnet", natOutgoing: true };
    await world.kubectl.create(pool, { ...type, kind: pool.kind, metadata: { name: "mine" }, spec });
    world.startOperator();
    await world.installation({ vendorNetwork: { linuxDataplane: "BPF", ipPools: [{ cidr: "10.9.0.0/16" }] } });
    for (const part of ["network", "ippools"]) await world.untilStatus(part, "Available");
    await world.kubectl.delete(storedKind("installation"), { name: "default" });
    await world.until(gone, (is) => is);
    expect((await world.get<KubeObject>(config, { name: "default" }))?.["spec"]).toEqual({ vxlanMTU: 1400 });
    const mine = await world.until(
      () => world.get<KubeObject>(pool, { name: "mine" }),
      (object) => object?.metadata.labels === undefined,
    );
    expect(mine?.["spec"]).toEqual(spec);
  });
});
