import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS } from "../../../cluster/kinds.ts";
import { type SmallCluster, smallCluster, template } from "../testing/small-cluster.ts";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "../workload-types.ts";

const namespace = "default";
const isBound = ({ status }: PersistentVolume | PersistentVolumeClaim) => status?.phase === "Bound";

describe("a claim of a volume", () => {
  let cluster: SmallCluster;
  beforeAll(async () => {
    cluster = await smallCluster();
  });
  afterAll(() => cluster.stop());

  const claim = (name: string, spec: Partial<PersistentVolumeClaim["spec"]> = {}) =>
    cluster.client.create<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS, {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name, namespace },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "5Gi" } }, ...spec },
    });

  it("of no class gets one of the standard class, which goes with it", async () => {
    await claim("flows");
    const bound = await cluster.until<PersistentVolumeClaim>(
      PERSISTENT_VOLUME_CLAIMS,
      { name: "flows", namespace },
      isBound,
    );
    expect(bound).toMatchObject({
      spec: { storageClassName: "standard" },
      status: { capacity: { storage: "5Gi" }, accessModes: ["ReadWriteOnce"] },
    });
    const name = bound.spec.volumeName as string;
    const volume = await cluster.client.get<PersistentVolume>(PERSISTENT_VOLUMES, { name });
    expect(volume).toMatchObject({ status: { phase: "Bound" }, spec: { claimRef: { name: "flows" } } });
    await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, { name: "flows", namespace });
    await cluster.untilGone(PERSISTENT_VOLUMES, { name });
  });

  it("is bound to the volume that somebody made for it, which is kept", async () => {
    const name = "by-hand";
    await cluster.client.create<PersistentVolume>(PERSISTENT_VOLUMES, {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name },
      spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/srv/flows" } },
    });
    await claim("own", { volumeName: name, storageClassName: "" });
    await cluster.until<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS, { name: "own", namespace }, isBound);
    await cluster.until<PersistentVolume>(PERSISTENT_VOLUMES, { name }, isBound);
  });

  it("of a class that nobody serves waits, and so do pods, which say what for", async () => {
    await claim("fast", { storageClassName: "fast" });
    const { metadata, spec } = template("reader");
    for (const claimName of ["fast", "missing"]) {
      const volumes = [{ name: "data", persistentVolumeClaim: { claimName } }];
      const pod = { ...metadata, name: `reads-${claimName}`, namespace };
      await cluster.client.create<Pod>(PODS, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: pod,
        spec: { ...spec, volumes },
      });
    }
    const why = ({ status }: Pod) => status?.conditions?.find(({ type }) => type === "PodScheduled")?.message;
    const waits = (name: string) => cluster.until<Pod>(PODS, { name, namespace }, (pod) => why(pod) !== undefined);
    expect(why(await waits("reads-missing"))).toBe('persistentvolumeclaim "missing" not found');
    expect(why(await waits("reads-fast"))).toBe("pod has unbound immediate PersistentVolumeClaims");
    await claim("missing");
    await cluster.until<Pod>(PODS, { name: "reads-missing", namespace }, (pod) => pod.spec.nodeName !== undefined);
  });
});
