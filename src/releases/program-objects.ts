import { vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import type { OldRelease } from "./old-release.ts";
import { accountObjects, deployment } from "./workload-objects.ts";

const { workloads, namespaces, groups, endpointMap } = vendorNames;

export function namespaceObject(name: string, labels?: Record<string, string>): KubeObject {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, ...(labels ? { labels } : {}) } };
}

/** The operator itself, as its manifest or its chart brought it. */
export function operatorObjects(release: OldRelease, labels?: Record<string, string>): KubeObject[] {
  const place = { name: workloads.operator, namespace: namespaces.operator };
  const everything = [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }];
  const container = {
    command: ["operator"],
    env: [{ name: "OPERATOR_NAME", value: workloads.operator }],
    envFrom: [{ configMapRef: { name: endpointMap.name, optional: true } }],
  };
  const pod = { hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet", tolerations: [{ operator: "Exists" }] };
  return [
    namespaceObject(namespaces.operator, { name: namespaces.operator, ...labels }),
    ...accountObjects(place, everything, labels),
    deployment(place, { release, container, pod, labels }),
  ];
}

export function kubeControllersObjects(
  release: OldRelease,
  namespace: string,
  datastore: "api" | "etcd",
): KubeObject[] {
  const place = { name: workloads.kubeControllers, namespace };
  const controllers = datastore === "etcd" ? "policy,namespace,serviceaccount,workloadendpoint,node" : "node";
  const rules = [
    { apiGroups: [""], resources: ["nodes", "pods", "namespaces", "services"], verbs: ["get", "list", "watch"] },
    { apiGroups: [groups.stored.group], resources: ["*"], verbs: ["*"] },
  ];
  const container = { env: [{ name: "ENABLED_CONTROLLERS", value: controllers }] };
  // With etcd it is what tells agents of nodes: it cannot wait for an address that agents give.
  const pod = datastore === "etcd" ? { hostNetwork: true } : {};
  return [...accountObjects(place, rules), deployment(place, { release, container, pod })];
}
