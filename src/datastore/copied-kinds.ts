import type { Names } from "../api/names.ts";
import type { ResourceKind } from "../api/object.ts";
import { NAMESPACES, NETWORK_POLICIES, NODES, PODS, SERVICE_ACCOUNTS } from "../cluster/kinds.ts";

/** What vendor-kube-controllers copies from Kubernetes into etcd, and agents read there. */
export const COPIED_KINDS: readonly ResourceKind[] = [PODS, NAMESPACES, SERVICE_ACCOUNTS, NODES, NETWORK_POLICIES];

/** `/vendor/kubernetes/pods/` */
export function copyFolder({ dialect }: Names, { plural }: ResourceKind): string {
  return `/${dialect}/kubernetes/${plural}/`;
}
