import type { KubeObject } from "../../api/object.ts";
import type { RenderInputs } from "./inputs.ts";
import { clusterRoleBinding, type Place, roleBinding } from "./rbac.ts";

/** The roles every cluster has for an API that leaves authentication and authorization to the orchestrator. */
export const DELEGATION = {
  clusterRole: "system:auth-delegator",
  role: { name: "extension-apiserver-authentication-reader", namespace: "kube-system" },
} as const;

export function delegation(place: Place): KubeObject[] {
  const { name, namespace } = DELEGATION.role;
  return [
    clusterRoleBinding(`${place.name}-auth-delegator`, DELEGATION.clusterRole, place),
    roleBinding({ name: `${place.name}-auth-reader`, namespace }, { kind: "Role", name }, place),
  ];
}

/** Comes last: the group is registered when there is a server for it. */
export function apiService(
  { caBundle }: RenderInputs,
  { group, version }: { group: string; version: string },
  service: Place,
): KubeObject {
  return {
    apiVersion: "apiregistration.k8s.io/v1",
    kind: "APIService",
    metadata: { name: `${version}.${group}` },
    spec: {
      group,
      version,
      groupPriorityMinimum: 1500,
      versionPriority: 200,
      service: { ...service, port: 443 },
      caBundle: Buffer.from(caBundle).toString("base64"),
    },
  };
}
