import type { KubeObject, ObjectMeta } from "../api/object.ts";

/** What the controllers read of the orchestrator's own kinds, and all they keep of them: a thousand nodes run many pods. */
export interface Node extends KubeObject {
  status?: { addresses?: { type: string; address: string }[] };
}

export interface Pod extends KubeObject {
  spec?: { nodeName?: string };
  status?: { phase?: string; podIP?: string; podIPs?: { ip?: string }[] };
}

/** Further networks of a pod, by the convention of plugins that attach them; their addresses are not in the pod's status. */
export const FURTHER_NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks";

export function slimNode(node: Node): Node {
  const { addresses } = node.status ?? {};
  return { ...head(node, node.metadata.annotations), status: { addresses: addresses ?? [] } };
}

export function slimPod(pod: Pod): Pod {
  const networks = pod.metadata.annotations?.[FURTHER_NETWORKS_ANNOTATION];
  const { phase, podIP, podIPs } = pod.status ?? {};
  return {
    ...head(pod, networks === undefined ? undefined : { [FURTHER_NETWORKS_ANNOTATION]: networks }),
    spec: { nodeName: pod.spec?.nodeName },
    status: { phase, podIP, podIPs },
  };
}

/** Namespaces and service accounts are only their names and labels to us. */
export function slimHead(object: KubeObject): KubeObject {
  return head(object, undefined);
}

function head({ apiVersion, kind, metadata }: KubeObject, annotations: ObjectMeta["annotations"]): KubeObject {
  const { name, namespace, uid, resourceVersion, deletionTimestamp, labels } = metadata;
  const kept: ObjectMeta = { name, uid, resourceVersion };
  if (namespace !== undefined) kept.namespace = namespace;
  if (deletionTimestamp !== undefined) kept.deletionTimestamp = deletionTimestamp;
  if (labels !== undefined) kept.labels = labels;
  if (annotations !== undefined) kept.annotations = annotations;
  return { apiVersion, kind, metadata: kept };
}
