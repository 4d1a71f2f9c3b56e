import { vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";

const { daemonSet } = vendorNames.serviceProxy;
/** Of kubeadm and the managed platforms; of kube-proxy as a static pod. */
const LABELS = ["k8s-app", "component"] as const;

/**
 * Whether the cluster runs kube-proxy on this node, or is about to. What the kernel has of an earlier kube-proxy does not tell: a reboot
 * clears it, and a node that joined while eBPF served never had it.
 */
export function isKubeProxyScheduled(pods: readonly KubeObject[], node: string): boolean {
  return pods.some((pod) => {
    const { namespace, labels = {}, ownerReferences = [], deletionTimestamp } = pod.metadata;
    if (namespace !== vendorNames.namespaces.orchestratorSystem || deletionTimestamp !== undefined) return false;
    const { nodeName } = (pod["spec"] ?? {}) as { nodeName?: string };
    if (nodeName !== node) return false;
    const { phase } = (pod["status"] ?? {}) as { phase?: string };
    if (phase === "Succeeded" || phase === "Failed") return false;
    const isOwned = ownerReferences.some(({ kind, name }) => kind === "DaemonSet" && name === daemonSet);
    return isOwned || LABELS.some((label) => labels[label] === daemonSet);
  });
}
