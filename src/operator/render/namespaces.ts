import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { ClusterKind } from "../../api/tables/cluster-kinds.ts";
import { platformOf } from "./platform.ts";
import { type Place, roleBinding } from "./rbac.ts";

/** Agents work on the node itself, so the namespace must admit privileged pods. */
const POD_SECURITY = {
  "pod-security.kubernetes.io/enforce": "privileged",
  "pod-security.kubernetes.io/enforce-version": "latest",
};

export function systemNamespace({ namespaces }: Names, kind: ClusterKind): KubeObject {
  return namespaceObject(namespaces.system, kind);
}

export function namespaceObject(name: string, kind: ClusterKind): KubeObject {
  const { labels, annotations } = platformOf(kind).namespace;
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: {
      name,
      labels: { name, ...POD_SECURITY, ...labels },
      ...(Object.keys(annotations).length > 0 ? { annotations: { ...annotations } } : {}),
    },
  };
}

/** The operator's rights end at its own namespace and this one; this is what gives it those here. */
export function operatorInSystemNamespace({ workloads, namespaces }: Names): KubeObject {
  const operator: Place = { name: workloads.operator, namespace: namespaces.operator };
  const place = { name: `${workloads.operator}-system`, namespace: namespaces.system };
  return roleBinding(place, { kind: "ClusterRole", name: place.name }, operator);
}
