import type { KubeObject } from "../api/object.ts";

interface Rule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  nonResourceURLs?: string[];
}

const READ = ["get", "list", "watch"];
const WRITE = ["create", "delete", "deletecollection", "patch", "update"];
const BOOTSTRAP = { "kubernetes.io/bootstrapping": "rbac-defaults" };

/** What people who use one namespace work with. */
const NAMESPACED: Record<string, string[]> = {
  "": [
    "configmaps",
    "endpoints",
    "events",
    "persistentvolumeclaims",
    "pods",
    "pods/log",
    "pods/status",
    "replicationcontrollers",
    "replicationcontrollers/scale",
    "serviceaccounts",
    "services",
    "services/status",
  ],
  apps: [
    "controllerrevisions",
    "daemonsets",
    "daemonsets/status",
    "deployments",
    "deployments/scale",
    "deployments/status",
    "replicasets",
    "replicasets/scale",
    "replicasets/status",
    "statefulsets",
    "statefulsets/scale",
    "statefulsets/status",
  ],
  batch: ["cronjobs", "jobs", "jobs/status"],
  autoscaling: ["horizontalpodautoscalers"],
  policy: ["poddisruptionbudgets"],
  "networking.k8s.io": ["ingresses", "networkpolicies"],
  "discovery.k8s.io": ["endpointslices"],
};

function namespacedRules(verbs: string[]): Rule[] {
  return Object.entries(NAMESPACED).map(([group, resources]) => ({ apiGroups: [group], resources, verbs }));
}

/** Logs and statuses are read, not written: a status is what a controller or a kubelet reports. */
const isWritten = (resource: string) => !resource.endsWith("/status") && !resource.endsWith("/log");

function writableRules(): Rule[] {
  return Object.entries(NAMESPACED).map(([group, resources]) => ({
    apiGroups: [group],
    resources: resources.filter(isWritten),
    verbs: WRITE,
  }));
}

const EVERYTHING: Rule[] = [
  { apiGroups: ["*"], resources: ["*"], verbs: ["*"] },
  { nonResourceURLs: ["*"], verbs: ["*"] },
];
const DISCOVERY_PATHS = [
  "/api",
  "/api/*",
  "/apis",
  "/apis/*",
  "/healthz",
  "/livez",
  "/openapi",
  "/openapi/*",
  "/readyz",
  "/version",
  "/version/",
];
const PUBLIC_PATHS = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

const aggregateTo = (name: string) => ({ [`rbac.authorization.k8s.io/aggregate-to-${name}`]: "true" });

/** The roles every Kubernetes cluster starts with, as far as people and programs here lean on them. */
export function bootstrapRoles(): KubeObject[] {
  return [
    clusterRole("cluster-admin", EVERYTHING),
    aggregated("admin"),
    aggregated("edit", aggregateTo("admin")),
    aggregated("view", aggregateTo("edit")),
    clusterRole("system:aggregate-to-view", namespacedRules(READ), aggregateTo("view")),
    clusterRole(
      "system:aggregate-to-edit",
      [...writableRules(), { apiGroups: [""], resources: ["secrets"], verbs: [...READ, ...WRITE] }],
      aggregateTo("edit"),
    ),
    clusterRole(
      "system:aggregate-to-admin",
      [{ apiGroups: ["rbac.authorization.k8s.io"], resources: ["roles", "rolebindings"], verbs: [...READ, ...WRITE] }],
      aggregateTo("admin"),
    ),
    clusterRole("system:basic-user", [
      {
        apiGroups: ["authorization.k8s.io"],
        resources: ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        verbs: ["create"],
      },
      { apiGroups: ["authentication.k8s.io"], resources: ["selfsubjectreviews"], verbs: ["create"] },
    ]),
    clusterRole("system:discovery", [{ nonResourceURLs: DISCOVERY_PATHS, verbs: ["get"] }]),
    clusterRole("system:public-info-viewer", [{ nonResourceURLs: PUBLIC_PATHS, verbs: ["get"] }]),
    clusterRole("system:auth-delegator", [
      { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
      { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
    ]),
    clusterRole("system:service-account-issuer-discovery", [
      { nonResourceURLs: ["/.well-known/openid-configuration", "/openid/v1/jwks"], verbs: ["get"] },
    ]),
    clusterRoleBinding("cluster-admin", "cluster-admin", ["system:masters"]),
    clusterRoleBinding("system:basic-user", "system:basic-user", ["system:authenticated"]),
    clusterRoleBinding("system:discovery", "system:discovery", ["system:authenticated"]),
    clusterRoleBinding("system:public-info-viewer", "system:public-info-viewer", [
      "system:authenticated",
      "system:unauthenticated",
    ]),
    authenticationReader(),
  ];
}

function clusterRole(name: string, rules: Rule[], labels: Record<string, string> = {}): KubeObject {
  return role("ClusterRole", { name, labels: { ...BOOTSTRAP, ...labels } }, { rules });
}

function aggregated(name: string, labels: Record<string, string> = {}): KubeObject {
  const clusterRoleSelectors = [{ matchLabels: aggregateTo(name) }];
  const body = { aggregationRule: { clusterRoleSelectors }, rules: [] };
  return role("ClusterRole", { name, labels: { ...BOOTSTRAP, ...labels } }, body);
}

function clusterRoleBinding(name: string, roleName: string, groups: readonly string[]): KubeObject {
  return role(
    "ClusterRoleBinding",
    { name, labels: BOOTSTRAP },
    {
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: roleName },
      subjects: groups.map((group) => ({ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: group })),
    },
  );
}

/** Lets an aggregated API server read this one's authentication configuration. */
function authenticationReader(): KubeObject {
  const rules = [
    { apiGroups: [""], resources: ["configmaps"], resourceNames: ["extension-apiserver-authentication"], verbs: READ },
  ];
  const metadata = { name: "extension-apiserver-authentication-reader", namespace: "kube-system", labels: BOOTSTRAP };
  return role("Role", metadata, { rules });
}

function role(kind: string, metadata: KubeObject["metadata"], body: Record<string, unknown>): KubeObject {
  return { apiVersion: "rbac.authorization.k8s.io/v1", kind, metadata, ...body };
}
