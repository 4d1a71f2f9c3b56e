import type { Condition, KubeObject, ObjectMeta } from "../api/object.ts";
import { SERVICE_REQUESTS } from "../api/protocol/service-addresses.ts";
import type { Service } from "../calc/services/service-ports.ts";

/** What the controllers read of the orchestrator's own kinds, and all they keep of them: a thousand nodes run many pods. */
export interface Node extends KubeObject {
  spec?: { podCIDRs?: string[] };
  status?: { addresses?: { type: string; address: string }[] };
}

export interface Pod extends KubeObject {
  spec?: { nodeName?: string; hostNetwork?: boolean };
  status?: { phase?: string; podIP?: string; podIPs?: { ip?: string }[] };
}

/** Of a Service, all that decides which addresses it claims or gets, and what is reported about that. */
export interface ServiceObject extends Service {
  spec?: Service["spec"] & { loadBalancerClass?: string; ipFamilies?: string[]; ipFamilyPolicy?: string };
  status?: Service["status"] & { conditions?: Condition[] };
}

/** Further networks of a pod, by the convention of plugins that attach them; their addresses are not in the pod's status. */
export const FURTHER_NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks";

export function slimNode(node: Node): Node {
  const { addresses } = node.status ?? {};
  const { podCIDRs } = node.spec ?? {};
  return {
    ...head(node, node.metadata.annotations),
    ...(podCIDRs ? { spec: { podCIDRs } } : {}),
    status: { addresses: addresses ?? [] },
  };
}

export function slimPod(pod: Pod): Pod {
  const networks = pod.metadata.annotations?.[FURTHER_NETWORKS_ANNOTATION];
  const { phase, podIP, podIPs } = pod.status ?? {};
  return {
    ...head(pod, networks === undefined ? undefined : { [FURTHER_NETWORKS_ANNOTATION]: networks }),
    spec: { nodeName: pod.spec?.nodeName, ...(pod.spec?.hostNetwork ? { hostNetwork: true } : {}) },
    status: { phase, podIP, podIPs },
  };
}

/** Without ports, selectors and most annotations: whose endpoints it has does not matter here. */
export function slimService(service: ServiceObject): ServiceObject {
  const { type, clusterIP, clusterIPs, externalIPs, loadBalancerClass, ipFamilies, ipFamilyPolicy } =
    service.spec ?? {};
  const { generation } = service.metadata;
  const slim = head(service, requestsOf(service));
  return {
    ...slim,
    metadata: { ...slim.metadata, ...(generation === undefined ? {} : { generation }) },
    spec: { type, clusterIP, clusterIPs, externalIPs, loadBalancerClass, ipFamilies, ipFamilyPolicy },
    status: service.status ?? {},
  };
}

function requestsOf({ metadata: { annotations = {} } }: KubeObject): ObjectMeta["annotations"] {
  const asked = Object.values(SERVICE_REQUESTS).flatMap((key) => {
    const value = annotations[key];
    return value === undefined ? [] : [[key, value] as const];
  });
  return asked.length === 0 ? undefined : Object.fromEntries(asked);
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
