import type { ResourceKind } from "../api/object.ts";

/** Kubernetes' own kinds that our programs read or write. Ours come from `src/api`; any other is asked of discovery. */
function kind(group: string, version: string, name: string, plural: string, namespaced = true): ResourceKind {
  return { group, version, kind: name, plural, namespaced };
}
const CLUSTER_WIDE = false;

export const NAMESPACES = kind("", "v1", "Namespace", "namespaces", CLUSTER_WIDE);
export const NODES = kind("", "v1", "Node", "nodes", CLUSTER_WIDE);
export const PODS = kind("", "v1", "Pod", "pods");
export const SERVICES = kind("", "v1", "Service", "services");
export const ENDPOINTS = kind("", "v1", "Endpoints", "endpoints");
export const CONFIG_MAPS = kind("", "v1", "ConfigMap", "configmaps");
export const SECRETS = kind("", "v1", "Secret", "secrets");
export const SERVICE_ACCOUNTS = kind("", "v1", "ServiceAccount", "serviceaccounts");
export const EVENTS = kind("", "v1", "Event", "events");
export const DEPLOYMENTS = kind("apps", "v1", "Deployment", "deployments");
export const REPLICA_SETS = kind("apps", "v1", "ReplicaSet", "replicasets");
export const DAEMON_SETS = kind("apps", "v1", "DaemonSet", "daemonsets");
export const CONTROLLER_REVISIONS = kind("apps", "v1", "ControllerRevision", "controllerrevisions");
export const JOBS = kind("batch", "v1", "Job", "jobs");
export const ENDPOINT_SLICES = kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices");
export const LEASES = kind("coordination.k8s.io", "v1", "Lease", "leases");
export const CRDS = kind(
  "apiextensions.k8s.io",
  "v1",
  "CustomResourceDefinition",
  "customresourcedefinitions",
  CLUSTER_WIDE,
);
export const API_SERVICES = kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", CLUSTER_WIDE);
export const CLUSTER_ROLES = kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", CLUSTER_WIDE);
export const CLUSTER_ROLE_BINDINGS = kind(
  "rbac.authorization.k8s.io",
  "v1",
  "ClusterRoleBinding",
  "clusterrolebindings",
  CLUSTER_WIDE,
);
export const ROLES = kind("rbac.authorization.k8s.io", "v1", "Role", "roles");
export const ROLE_BINDINGS = kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings");
export const POD_DISRUPTION_BUDGETS = kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
export const PRIORITY_CLASSES = kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", CLUSTER_WIDE);
export const PERSISTENT_VOLUMES = kind("", "v1", "PersistentVolume", "persistentvolumes", CLUSTER_WIDE);
export const PERSISTENT_VOLUME_CLAIMS = kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
export const CSI_DRIVERS = kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", CLUSTER_WIDE);
export const NETWORK_POLICIES = kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies");
