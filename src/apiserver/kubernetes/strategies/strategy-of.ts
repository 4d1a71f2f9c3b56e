import type { Schema } from "../../../api/schema/schema.ts";
import type { Strategy } from "../../resource.ts";
import { dropEmpty } from "../drop-empty.ts";
import { packageOf, typeNamed } from "../types.ts";
import {
  leaseStrategy,
  namespaceStrategy,
  nodeStrategy,
  persistentVolumeClaimStrategy,
  persistentVolumeStrategy,
  priorityClassStrategy,
  storageClassStrategy,
} from "./cluster.ts";
import { configMapStrategy, secretStrategy } from "./config.ts";
import { apiServiceStrategy, crdStrategy } from "./extension.ts";
import { freshStatus } from "./fresh-status.ts";
import { cronJobStrategy, jobStrategy } from "./job.ts";
import {
  autoscalerStrategy,
  disruptionBudgetStrategy,
  endpointSliceStrategy,
  endpointsStrategy,
  ingressStrategy,
  networkPolicyStrategy,
  webhookStrategy,
} from "./network.ts";
import { podStrategy } from "./pod.ts";
import { clusterRoleBindingStrategy, clusterRoleStrategy, roleBindingStrategy, roleStrategy } from "./rbac.ts";
import { serviceStrategy } from "./service.ts";
import {
  daemonSetStrategy,
  deploymentStrategy,
  podTemplateStrategy,
  replicaSetStrategy,
  replicationControllerStrategy,
  statefulSetStrategy,
} from "./workload.ts";

/** What each kind does beyond its schema. Kinds that are not here only store what they are given. */
const STRATEGIES: Readonly<Record<string, Strategy>> = {
  "/Pod": podStrategy,
  "/PodTemplate": podTemplateStrategy,
  "/Node": nodeStrategy,
  "/Namespace": namespaceStrategy,
  "/Service": serviceStrategy,
  "/Endpoints": endpointsStrategy,
  "/ConfigMap": configMapStrategy,
  "/Secret": secretStrategy,
  "/PersistentVolume": persistentVolumeStrategy,
  "/PersistentVolumeClaim": persistentVolumeClaimStrategy,
  "/ReplicationController": replicationControllerStrategy,
  "/ResourceQuota": { prepareForCreate: freshStatus() },
  "apps/Deployment": deploymentStrategy,
  "apps/ReplicaSet": replicaSetStrategy,
  "apps/DaemonSet": daemonSetStrategy,
  "apps/StatefulSet": statefulSetStrategy,
  "batch/Job": jobStrategy,
  "batch/CronJob": cronJobStrategy,
  "discovery.k8s.io/EndpointSlice": endpointSliceStrategy,
  "coordination.k8s.io/Lease": leaseStrategy,
  "rbac.authorization.k8s.io/Role": roleStrategy,
  "rbac.authorization.k8s.io/ClusterRole": clusterRoleStrategy,
  "rbac.authorization.k8s.io/RoleBinding": roleBindingStrategy,
  "rbac.authorization.k8s.io/ClusterRoleBinding": clusterRoleBindingStrategy,
  "policy/PodDisruptionBudget": disruptionBudgetStrategy,
  "scheduling.k8s.io/PriorityClass": priorityClassStrategy,
  "networking.k8s.io/NetworkPolicy": networkPolicyStrategy,
  "networking.k8s.io/Ingress": ingressStrategy,
  "autoscaling/HorizontalPodAutoscaler": autoscalerStrategy,
  "storage.k8s.io/StorageClass": storageClassStrategy,
  "apiextensions.k8s.io/CustomResourceDefinition": crdStrategy,
  "apiregistration.k8s.io/APIService": apiServiceStrategy,
  "admissionregistration.k8s.io/MutatingWebhookConfiguration": webhookStrategy,
  "admissionregistration.k8s.io/ValidatingWebhookConfiguration": webhookStrategy,
};

export function strategyOf(group: string, version: string, kind: string): Strategy {
  const type = typeNamed(`${packageOf(group, version)}.${kind}`);
  return guarded(STRATEGIES[`${group}/${kind}`] ?? {}, type);
}

/**
 * Defaults are filled before the schema is checked, so they meet objects of every shape. One they stumble over has a
 * field of the wrong type, which the schema is about to say in better words.
 */
function guarded(strategy: Strategy, type: Schema): Strategy {
  const { setDefaults, prepareForCreate, prepareForUpdate } = strategy;
  return {
    ...strategy,
    setDefaults(object) {
      forgiving(() => setDefaults?.(object));
      dropEmpty(type, object);
    },
    ...(prepareForCreate && { prepareForCreate: (object) => forgiving(() => prepareForCreate(object)) }),
    ...(prepareForUpdate && { prepareForUpdate: (object, old) => forgiving(() => prepareForUpdate(object, old)) }),
  };
}

function forgiving(fill: () => void): void {
  try {
    fill();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
}
