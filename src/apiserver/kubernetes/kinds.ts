import type { KubeObject } from "../../api/object.ts";
import { ALL_VERBS, type ScalePaths, type ServedKind, type Verb } from "../resource.ts";
import { dig } from "./column.ts";
import { columnsOf } from "./columns.ts";
import { strategyOf } from "./strategies/strategy-of.ts";
import { DEFINITIONS, packageOf, typeNamed } from "./types.ts";

/** One row of the table below. Namespaced, with all verbs and no status, unless it says otherwise. */
interface Row {
  kind: string;
  /** Default: the kind in lower case with an `s`. */
  plural?: string;
  short?: readonly string[];
  categories?: readonly string[];
  cluster?: true;
  verbs?: readonly Verb[];
  status?: true;
  scale?: ScalePaths;
  select?: readonly string[];
}

const ALL = ["all"];
const EXTENSIONS = ["api-extensions"];
const CREATE: readonly Verb[] = ["create"];
const NO_COLLECTION = ALL_VERBS.filter((verb) => verb !== "deletecollection");
const BY_LABELS: ScalePaths = { spec: ".spec.replicas", status: ".status.replicas", selector: ".spec.selector" };

const subject = (root: string): string[] =>
  ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].map((field) => `${root}.${field}`);

/** Group and version, and the kinds Kubernetes itself serves there. */
const TABLE: Readonly<Record<string, readonly Row[]>> = {
  "/v1": [
    {
      kind: "Pod",
      short: ["po"],
      categories: ALL,
      status: true,
      select: [
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
      ],
    },
    { kind: "PodTemplate" },
    { kind: "Node", short: ["no"], cluster: true, status: true, select: ["spec.unschedulable"] },
    { kind: "Namespace", short: ["ns"], cluster: true, verbs: NO_COLLECTION, status: true, select: ["status.phase"] },
    { kind: "Service", short: ["svc"], categories: ALL, status: true, select: ["spec.clusterIP", "spec.type"] },
    { kind: "Endpoints", plural: "endpoints", short: ["ep"] },
    { kind: "ConfigMap", short: ["cm"] },
    { kind: "Secret", select: ["type"] },
    { kind: "ServiceAccount", short: ["sa"] },
    {
      kind: "Event",
      short: ["ev"],
      select: [...subject("involvedObject"), "reason", "reportingComponent", "source", "type"],
    },
    { kind: "PersistentVolume", short: ["pv"], cluster: true, status: true },
    { kind: "PersistentVolumeClaim", short: ["pvc"], status: true },
    {
      kind: "ReplicationController",
      short: ["rc"],
      categories: ALL,
      status: true,
      scale: BY_LABELS,
      select: ["status.replicas"],
    },
    { kind: "LimitRange", short: ["limits"] },
    { kind: "ResourceQuota", short: ["quota"], status: true },
    { kind: "Binding", verbs: CREATE },
  ],
  "apps/v1": [
    { kind: "Deployment", short: ["deploy"], categories: ALL, status: true, scale: BY_LABELS },
    { kind: "ReplicaSet", short: ["rs"], categories: ALL, status: true, scale: BY_LABELS, select: ["status.replicas"] },
    { kind: "DaemonSet", short: ["ds"], categories: ALL, status: true },
    { kind: "StatefulSet", short: ["sts"], categories: ALL, status: true, scale: BY_LABELS },
    { kind: "ControllerRevision" },
  ],
  "batch/v1": [
    { kind: "Job", categories: ALL, status: true, select: ["status.successful"] },
    { kind: "CronJob", short: ["cj"], categories: ALL, status: true },
  ],
  "discovery.k8s.io/v1": [{ kind: "EndpointSlice" }],
  "coordination.k8s.io/v1": [{ kind: "Lease" }],
  "rbac.authorization.k8s.io/v1": [
    { kind: "Role" },
    { kind: "RoleBinding" },
    { kind: "ClusterRole", cluster: true },
    { kind: "ClusterRoleBinding", cluster: true },
  ],
  "policy/v1": [{ kind: "PodDisruptionBudget", short: ["pdb"], status: true }],
  "scheduling.k8s.io/v1": [{ kind: "PriorityClass", plural: "priorityclasses", short: ["pc"], cluster: true }],
  "networking.k8s.io/v1": [
    { kind: "NetworkPolicy", plural: "networkpolicies", short: ["netpol"] },
    { kind: "Ingress", plural: "ingresses", short: ["ing"], status: true },
    { kind: "IngressClass", plural: "ingressclasses", cluster: true },
  ],
  "apiextensions.k8s.io/v1": [
    {
      kind: "CustomResourceDefinition",
      short: ["crd", "crds"],
      categories: EXTENSIONS,
      cluster: true,
      status: true,
    },
  ],
  "apiregistration.k8s.io/v1": [{ kind: "APIService", categories: EXTENSIONS, cluster: true, status: true }],
  "authentication.k8s.io/v1": [
    { kind: "TokenReview", cluster: true, verbs: CREATE },
    { kind: "SelfSubjectReview", cluster: true, verbs: CREATE },
  ],
  "authorization.k8s.io/v1": [
    { kind: "SubjectAccessReview", cluster: true, verbs: CREATE },
    { kind: "SelfSubjectAccessReview", cluster: true, verbs: CREATE },
    { kind: "SelfSubjectRulesReview", cluster: true, verbs: CREATE },
    { kind: "LocalSubjectAccessReview", verbs: CREATE },
  ],
  "events.k8s.io/v1": [
    { kind: "Event", short: ["ev"], select: [...subject("regarding"), "reason", "reportingController", "type"] },
  ],
  "autoscaling/v2": [{ kind: "HorizontalPodAutoscaler", short: ["hpa"], categories: ALL, status: true }],
  "storage.k8s.io/v1": [
    { kind: "StorageClass", plural: "storageclasses", short: ["sc"], cluster: true },
    { kind: "CSIDriver", cluster: true },
    { kind: "CSINode", cluster: true },
  ],
  "node.k8s.io/v1": [{ kind: "RuntimeClass", plural: "runtimeclasses", cluster: true }],
  "admissionregistration.k8s.io/v1": [
    { kind: "MutatingWebhookConfiguration", categories: EXTENSIONS, cluster: true },
    { kind: "ValidatingWebhookConfiguration", categories: EXTENSIONS, cluster: true },
  ],
};

/** Every kind Kubernetes itself serves here. */
export function kubernetesKinds(): ServedKind[] {
  return Object.entries(TABLE).flatMap(([groupVersion, rows]) => {
    const [group = "", version = ""] = groupVersion.split("/");
    return rows.map((row) => served(group, version, row));
  });
}

function served(group: string, version: string, row: Row): ServedKind {
  const singular = row.kind.toLowerCase();
  return {
    group,
    version,
    kind: row.kind,
    plural: row.plural ?? `${singular}s`,
    singular,
    namespaced: !row.cluster,
    shortNames: row.short ?? [],
    categories: row.categories ?? [],
    schema: typeNamed(`${packageOf(group, version)}.${row.kind}`),
    definitions: DEFINITIONS,
    verbs: row.verbs ?? ALL_VERBS,
    status: row.status ?? false,
    ...(row.scale ? { scale: row.scale } : {}),
    columns: columnsOf(group, row.kind),
    selectable: Object.fromEntries((row.select ?? []).map((path) => [path, selected(path)])),
    strategy: strategyOf(group, version, row.kind),
  };
}

/** How a field reads where its absence means something. */
const ABSENT: Readonly<Record<string, string>> = {
  "spec.unschedulable": "false",
  "spec.hostNetwork": "false",
  "status.replicas": "0",
};

/** Fields that clients select by another name than they are kept under. */
const KEPT_AS: Readonly<Record<string, string>> = {
  source: "source.component",
  "status.successful": "status.succeeded",
};

function selected(path: string): (object: KubeObject) => string {
  const kept = KEPT_AS[path] ?? path;
  return (object) => String(dig(object, kept) ?? ABSENT[path] ?? "");
}
