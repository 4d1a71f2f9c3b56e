import type { Names } from "../../api/names.ts";
import type { KubeObject, OwnerReference } from "../../api/object.ts";
import type { Client } from "../../cluster/client.ts";
import { PODS, REPLICA_SETS } from "../../cluster/kinds.ts";
import type { Target } from "../actions/objects/target.ts";

interface Pod extends KubeObject {
  spec?: { containers?: { name: string; image?: string }[] };
}

/** A workload whose pods have the sidecar, and which sidecars those are. */
export interface SidecarCarrier {
  workload: Target;
  images: readonly string[];
  /** Of its pod template, to know what an earlier run has set. */
  annotations: Readonly<Record<string, string>>;
}

/** Pods without a controller that would start them again: the user restarts them. */
export interface BarePod {
  namespace: string;
  name: string;
}

const ROLLED = new Set(["Deployment", "StatefulSet", "DaemonSet"]);

/**
 * Injectors work on pods, so whether a workload carries the sidecar is seen on its pods, not in its template. Restarting is asked
 * of whatever rolls them: the Deployment above the replica set, a StatefulSet, a DaemonSet.
 */
export async function sidecarCarriers(
  client: Client,
  names: Names,
  signal?: AbortSignal,
): Promise<{ carriers: SidecarCarrier[]; bare: BarePod[] }> {
  const { items } = await client.list<Pod>(PODS, { signal });
  const images = new Map<string, { workload: Target; images: Set<string> }>();
  const bare: BarePod[] = [];
  const replicaSets = new Map<string, Promise<KubeObject>>();
  const ownerOf = async (pod: Pod): Promise<OwnerReference | undefined> => {
    const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller);
    if (owner?.kind !== "ReplicaSet") return owner;
    const ref = { name: owner.name, namespace: pod.metadata.namespace };
    const key = `${ref.namespace}/${ref.name}`;
    const asked = replicaSets.get(key) ?? client.get<KubeObject>(REPLICA_SETS, ref, { signal });
    replicaSets.set(key, asked);
    return (await asked).metadata.ownerReferences?.find(({ controller }) => controller);
  };
  for (const pod of items) {
    const sidecar = pod.spec?.containers?.find(({ name }) => name === names.manifests.sidecarContainer);
    if (!sidecar || pod.metadata.deletionTimestamp) continue;
    const { namespace = "", name } = pod.metadata;
    const owner = await ownerOf(pod);
    if (!owner || !ROLLED.has(owner.kind)) {
      bare.push({ namespace, name });
      continue;
    }
    const { apiVersion, kind, name: workload } = owner;
    const key = `${namespace} ${kind} ${workload}`;
    const found = images.get(key) ?? { workload: { apiVersion, kind, namespace, name: workload }, images: new Set() };
    images.set(key, { ...found, images: found.images.add(sidecar.image ?? "") });
  }
  const sorted = [...images].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
  const carriers: SidecarCarrier[] = [];
  for (const { workload, images: seen } of sorted) {
    const live = await client.get<KubeObject>(await client.resourceFor(workload), workload, { signal });
    carriers.push({ workload, images: [...seen].sort(), annotations: templateAnnotations(live) });
  }
  return { carriers, bare };
}

function templateAnnotations(workload: KubeObject): Record<string, string> {
  const spec = (workload["spec"] ?? {}) as { template?: { metadata?: { annotations?: Record<string, string> } } };
  return spec.template?.metadata?.annotations ?? {};
}
