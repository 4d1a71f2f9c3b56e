import type { KubeObject } from "../../api/object.ts";

export interface Rule {
  apiGroups: readonly string[];
  resources: readonly string[];
  resourceNames?: readonly string[];
  verbs: readonly string[];
}

export interface Place {
  name: string;
  namespace: string;
}

const GROUP = "rbac.authorization.k8s.io";

export const READ = ["get", "list", "watch"] as const;
export const WRITE = ["create", "update", "patch", "delete"] as const;

export function rule(group: string, resources: readonly string[], verbs: readonly string[], names?: string[]): Rule {
  return { apiGroups: [group], resources, ...(names ? { resourceNames: names } : {}), verbs };
}

export function serviceAccount(place: Place): KubeObject {
  return { apiVersion: "v1", kind: "ServiceAccount", metadata: { ...place } };
}

export function clusterRole(name: string, rules: readonly Rule[], labels?: Record<string, string>): KubeObject {
  return { apiVersion: `${GROUP}/v1`, kind: "ClusterRole", metadata: { name, ...(labels && { labels }) }, rules };
}

export function role(place: Place, rules: readonly Rule[]): KubeObject {
  return { apiVersion: `${GROUP}/v1`, kind: "Role", metadata: { ...place }, rules };
}

export function clusterRoleBinding(name: string, roleName: string, account: Place): KubeObject {
  return binding("ClusterRoleBinding", { name }, { kind: "ClusterRole", name: roleName }, account);
}

export function roleBinding(
  place: Place,
  roleRef: { kind: "Role" | "ClusterRole"; name: string },
  account: Place,
): KubeObject {
  return binding("RoleBinding", place, roleRef, account);
}

function binding(kind: string, metadata: KubeObject["metadata"], roleRef: object, account: Place): KubeObject {
  return {
    apiVersion: `${GROUP}/v1`,
    kind,
    metadata: { ...metadata },
    roleRef: { apiGroup: GROUP, ...roleRef },
    subjects: [{ kind: "ServiceAccount", name: account.name, namespace: account.namespace }],
  };
}

/** Binds a ClusterRole to every member of a group. */
export function groupBinding(name: string, roleName: string, group: string): KubeObject {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name },
    roleRef: { apiGroup: GROUP, kind: "ClusterRole", name: roleName },
    subjects: [{ apiGroup: GROUP, kind: "Group", name: group }],
  };
}

/** An account with rights in the whole cluster and, where given, further ones in its own namespace; all under one name. */
export function accountWithRights(place: Place, everywhere: readonly Rule[], atHome: readonly Rule[]): KubeObject[] {
  const home = [role(place, atHome), roleBinding(place, { kind: "Role", name: place.name }, place)];
  return [
    serviceAccount(place),
    ...(everywhere.length > 0
      ? [clusterRole(place.name, everywhere), clusterRoleBinding(place.name, place.name, place)]
      : []),
    ...(atHome.length > 0 ? home : []),
  ];
}

/** To hold one lease. Creating cannot be limited to a name: the server has none yet when it asks. */
export function leaseRules(name: string): Rule[] {
  const group = "coordination.k8s.io";
  return [rule(group, ["leases"], ["create"]), rule(group, ["leases"], ["get", "update"], [name])];
}
