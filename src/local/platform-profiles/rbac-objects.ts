import type { KubeObject } from "../../api/object.ts";

interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
}

const API_GROUP = "rbac.authorization.k8s.io";

export function clusterRole(name: string, rules: Rule[], labels?: Record<string, string>): KubeObject {
  return {
    apiVersion: `${API_GROUP}/v1`,
    kind: "ClusterRole",
    metadata: { name, ...(labels ? { labels } : {}) },
    rules,
  };
}

/** Gives a cluster role to one service account, under the role's own name. */
export function clusterRoleBinding(
  role: string,
  account: { name: string; namespace: string },
  labels?: Record<string, string>,
): KubeObject {
  return {
    apiVersion: `${API_GROUP}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name: role, ...(labels ? { labels } : {}) },
    roleRef: { apiGroup: API_GROUP, kind: "ClusterRole", name: role },
    subjects: [{ kind: "ServiceAccount", ...account }],
  };
}
