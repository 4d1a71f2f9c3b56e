import type { KubeObject } from "../api/object.ts";
import type { OldRelease } from "./old-release.ts";

const REGISTRY = "registry.vendor.io/vendor";
const RBAC = "rbac.authorization.k8s.io";

export function image(name: string, release: OldRelease): string {
  return `${REGISTRY}/${name}:${release.tag}`;
}

export interface Place {
  name: string;
  namespace: string;
}

/** A service account and its rights, which every program of the service had under its own name. */
export function accountObjects(
  { name, namespace }: Place,
  rules: readonly object[],
  labels?: Record<string, string>,
): KubeObject[] {
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace, ...(labels ? { labels } : {}) } },
    { apiVersion: `${RBAC}/v1`, kind: "ClusterRole", metadata: { name, ...(labels ? { labels } : {}) }, rules },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name, ...(labels ? { labels } : {}) },
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", name, namespace }],
    },
  ];
}

interface DeploymentParts {
  release: OldRelease;
  replicas?: number;
  container: object;
  pod?: object;
  labels?: Record<string, string>;
}

/** A Deployment of one container, identified by `k8s-app`. */
export function deployment({ name, namespace }: Place, parts: DeploymentParts): KubeObject {
  const { release, replicas = 1, container, pod = {}, labels } = parts;
  const selector = { "k8s-app": name };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace, labels: { ...selector, ...labels } },
    spec: {
      replicas,
      selector: { matchLabels: selector },
      strategy: { type: "Recreate" },
      template: {
        metadata: { labels: selector },
        spec: {
          nodeSelector: { "kubernetes.io/os": "linux" },
          serviceAccountName: name,
          tolerations: [
            { key: "CriticalAddonsOnly", operator: "Exists" },
            { key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" },
            { key: "node-role.kubernetes.io/master", effect: "NoSchedule" },
          ],
          ...pod,
          containers: [{ name, image: image(imageName(name), release), ...container }],
        },
      },
    },
  };
}

function imageName(program: string): string {
  return program.replace(/^vendor-/, "");
}
