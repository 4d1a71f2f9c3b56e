import type { KubeObject } from "../../../api/object.ts";
import { isNotFound } from "../../../cluster/failures.ts";
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from "../../../cluster/kinds.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import type { PersistentVolume, PersistentVolumeClaim } from "../workload-types.ts";

/** Where every node sees the disks of the cluster, as a network file system would be mounted. */
export const DISKS = "/srv/disks";
const STORAGE_CLASS = "standard";
const PROVISIONER = "disks.vendor.io/shared";
const IS_DEFAULT = "storageclass.kubernetes.io/is-default-class";

/** The one way to get a volume here: a directory that all nodes share. */
export const STANDARD_STORAGE: KubeObject = {
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: { name: STORAGE_CLASS, annotations: { [IS_DEFAULT]: "true" } },
  provisioner: PROVISIONER,
  reclaimPolicy: "Delete",
  volumeBindingMode: "Immediate",
};

/** Gives every claim of the standard class a volume, and takes it away with the claim. A volume that somebody made for a claim is bound to it. */
export function claimBinderLoop(context: ControllerContext): ControllerLoop {
  const { informers } = context;
  const client = context.clientFor("persistent-volume-binder");
  const recorder = context.recorderFor({ component: "persistentvolume-controller" });

  const release = async (key: string) => {
    for (const volume of informers.persistentVolumes.list()) {
      const { claimRef, persistentVolumeReclaimPolicy } = volume.spec;
      if (!claimRef || `${claimRef.namespace}/${claimRef.name}` !== key || volume.status?.phase !== "Bound") continue;
      if (persistentVolumeReclaimPolicy === "Delete") {
        await client.delete(PERSISTENT_VOLUMES, volume.metadata).catch((error: unknown) => {
          if (!isNotFound(error)) throw error;
        });
      } else await client.replace(PERSISTENT_VOLUMES, withPhase(volume, "Released"), { subresource: "status" });
    }
  };

  const volumeFor = async (claim: PersistentVolumeClaim): Promise<PersistentVolume | undefined> => {
    const { storageClassName = STORAGE_CLASS, volumeName } = claim.spec;
    const { namespace = "", name, uid = "" } = claim.metadata;
    const own = informers.persistentVolumes
      .list()
      .find(({ metadata, spec: { claimRef } }) =>
        volumeName
          ? metadata.name === volumeName
          : claimRef?.namespace === namespace && claimRef.name === name && (claimRef.uid ?? uid) === uid,
      );
    if (own || volumeName || storageClassName !== STORAGE_CLASS) return own;
    const made = `pvc-${uid}`;
    recorder.record(claim, "Normal", "ProvisioningSucceeded", `Successfully provisioned volume ${made}`);
    return await client.create<PersistentVolume>(PERSISTENT_VOLUMES, {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: made },
      spec: {
        capacity: { storage: claim.spec.resources?.requests?.["storage"] ?? "1Gi" },
        accessModes: claim.spec.accessModes ?? ["ReadWriteOnce"],
        persistentVolumeReclaimPolicy: "Delete",
        storageClassName,
        claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name, uid },
        hostPath: { path: `${DISKS}/${made}`, type: "DirectoryOrCreate" },
      },
    });
  };

  return {
    name: "claim-binder",
    workers: 1,
    watch(enqueue) {
      informers.persistentVolumeClaims.onChange(({ key }) => enqueue(key));
      informers.persistentVolumes.onChange(({ object: { spec } }) => {
        if (spec.claimRef) enqueue(`${spec.claimRef.namespace}/${spec.claimRef.name}`);
      });
    },
    async reconcile(key) {
      const claim = informers.persistentVolumeClaims.get(key);
      if (!claim) return void (await release(key));
      if (claim.metadata.deletionTimestamp || claim.status?.phase === "Bound") return undefined;
      const volume = await volumeFor(claim);
      if (!volume) return undefined;
      const { accessModes, capacity } = volume.spec;
      if (volume.status?.phase !== "Bound")
        await client.replace(PERSISTENT_VOLUMES, withPhase(volume, "Bound"), { subresource: "status" });
      const spec = { ...claim.spec, volumeName: volume.metadata.name, storageClassName: volume.spec.storageClassName };
      const bound = claim.spec.volumeName
        ? claim
        : await client.replace<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS, { ...claim, spec });
      const status = { phase: "Bound", accessModes, capacity };
      await client.replace(PERSISTENT_VOLUME_CLAIMS, { ...bound, status }, { subresource: "status" });
      return undefined;
    },
  };
}

function withPhase(volume: PersistentVolume, phase: string): PersistentVolume {
  return { ...volume, status: { ...volume.status, phase } };
}
