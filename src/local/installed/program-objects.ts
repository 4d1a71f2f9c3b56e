import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
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
  return [...accountObjects(place, rules), deployment(place, { release, container })];
}

/** The aggregated v3 API in the namespace it had before v3.31. */
export function apiServerObjects(release: OldRelease): KubeObject[] {
  const place = { name: workloads.apiServer, namespace: namespaces.apiServerBeforeV331 };
  const { group, version } = groups.served;
  const service = { name: "vendor-api", namespace: place.namespace };
  const container = { ports: [{ name: "https", containerPort: 5443 }] };
  return [
    ...accountObjects(place, [{ apiGroups: [groups.stored.group], resources: ["*"], verbs: ["*"] }]),
    deployment(place, { release, replicas: 2, container }),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: service,
      spec: { selector: { "k8s-app": place.name }, ports: [{ name: "https", port: 443, targetPort: 5443 }] },
    },
    {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: `${version}.${group}` },
      spec: {
        group,
        version,
        service: { ...service, port: 443 },
        groupPriorityMinimum: 1500,
        versionPriority: 200,
        insecureSkipTLSVerify: true,
      },
    },
  ];
}

/** Flow logs and their UI, which came with v3.30. */
export function flowObjects(release: OldRelease): KubeObject[] {
  return [workloads.flowLogs, workloads.flowUI].flatMap((name) => {
    const place = { name, namespace: namespaces.system };
    const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: place };
    return [account, deployment(place, { release, container: {} })];
  });
}
