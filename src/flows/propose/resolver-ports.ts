import type { KubeObject } from "../../api/object.ts";
import type { FlowEnd } from "../../api/protocol/flow.ts";
import { workloadEnd } from "../../api/protocol/workload-end.ts";
import type { ClusterObjects } from "../explain/cluster-objects.ts";

/** Services of cluster resolvers: Kubernetes' own, and OpenShift's. */
const RESOLVERS = ["kube-system/kube-dns", "openshift-dns/dns-default"];
const SERVICE_LABEL = "kubernetes.io/service-name";
const DNS_PORT = /^dns(?:-tcp)?$/;

interface EndpointSlice extends KubeObject {
  ports?: { name?: string; port?: number }[] | null;
  endpoints?: { targetRef?: { kind?: string; name?: string; namespace?: string } | null }[] | null;
}

/** Whether an end is the cluster's resolver on the port of its pods for DNS. */
export function resolverPorts(objects: ClusterObjects): (end: FlowEnd, port: number) => boolean {
  const pods = new Set<string>();
  const ports = new Set<string>();
  for (const slice of (objects.get("endpointSlices") ?? []) as readonly EndpointSlice[]) {
    const { namespace = "", labels = {} } = slice.metadata;
    if (!RESOLVERS.includes(`${namespace}/${labels[SERVICE_LABEL]}`)) continue;
    for (const { name = "", port } of slice.ports ?? []) if (DNS_PORT.test(name)) ports.add(`${namespace} ${port}`);
    for (const { targetRef } of slice.endpoints ?? []) if (targetRef?.name) pods.add(`${namespace}/${targetRef.name}`);
  }
  const workloads = new Set<string>();
  if (pods.size > 0)
    for (const pod of objects.get("pods") ?? [])
      if (pods.has(`${pod.metadata.namespace}/${pod.metadata.name}`))
        workloads.add(`${pod.metadata.namespace}/${workloadEnd(pod).name}`);
  return ({ type, namespace, name }, port) =>
    type === "Workload" && ports.has(`${namespace} ${port}`) && workloads.has(`${namespace}/${name}`);
}
