import type { KubeObject, ResourceKind } from "../../api/object.ts";
import type { Client } from "../../cluster/client.ts";
import { createInformer, type Informer } from "../../cluster/informer.ts";
import {
  API_SERVICES,
  CONTROLLER_REVISIONS,
  CRDS,
  DAEMON_SETS,
  DEPLOYMENTS,
  ENDPOINT_SLICES,
  ENDPOINTS,
  JOBS,
  LEASES,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  REPLICA_SETS,
  SERVICE_ACCOUNTS,
  SERVICES,
} from "../../cluster/kinds.ts";
import type { Clock } from "../../kit/clock.ts";
import { controllerOf } from "./garbage/owner-references.ts";
import { ObjectIndex } from "./object-index.ts";
import { SERVICE_NAME } from "./services/endpoint-slice-plan.ts";
import type {
  ControllerRevision,
  DaemonSet,
  Deployment,
  EndpointSlice,
  Job,
  Lease,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  ReplicaSet,
  Service,
} from "./workload-types.ts";

/** One watch per kind for all controllers together, and the indexes that keep their lookups from scanning. */
export interface SharedInformers {
  pods: Informer<Pod>;
  nodes: Informer<Node>;
  namespaces: Informer<Namespace>;
  serviceAccounts: Informer<KubeObject>;
  services: Informer<Service>;
  endpoints: Informer<KubeObject>;
  endpointSlices: Informer<EndpointSlice>;
  deployments: Informer<Deployment>;
  replicaSets: Informer<ReplicaSet>;
  daemonSets: Informer<DaemonSet>;
  controllerRevisions: Informer<ControllerRevision>;
  jobs: Informer<Job>;
  budgets: Informer<PodDisruptionBudget>;
  leases: Informer<Lease>;
  persistentVolumes: Informer<PersistentVolume>;
  persistentVolumeClaims: Informer<PersistentVolumeClaim>;
  crds: Informer<KubeObject>;
  apiServices: Informer<KubeObject>;
  podsByOwner: ObjectIndex<Pod>;
  podsByNode: ObjectIndex<Pod>;
  /** By namespace: pods no controller owns. */
  orphanPods: ObjectIndex<Pod>;
  replicaSetsByOwner: ObjectIndex<ReplicaSet>;
  revisionsByOwner: ObjectIndex<ControllerRevision>;
  /** By `NAMESPACE/SERVICE`. */
  slicesByService: ObjectIndex<EndpointSlice>;
  /** The informer that already follows a resource, if one does. */
  following(kind: ResourceKind): Informer<KubeObject> | undefined;
  readonly synced: Promise<void>;
  stop(): Promise<void>;
}

export interface SharedInformersOptions {
  clock?: Clock;
  onError?: (error: unknown) => void;
}

export function openSharedInformers(client: Client, options: SharedInformersOptions = {}): SharedInformers {
  const open = new Map<string, Informer<KubeObject>>();
  const follow = <T extends KubeObject>(kind: ResourceKind): Informer<T> => {
    const informer = createInformer<T>(client, kind, options);
    open.set(resourceName(kind), informer as unknown as Informer<KubeObject>);
    return informer;
  };
  const informers = {
    pods: follow<Pod>(PODS),
    nodes: follow<Node>(NODES),
    namespaces: follow<Namespace>(NAMESPACES),
    serviceAccounts: follow(SERVICE_ACCOUNTS),
    services: follow<Service>(SERVICES),
    endpoints: follow(ENDPOINTS),
    endpointSlices: follow<EndpointSlice>(ENDPOINT_SLICES),
    deployments: follow<Deployment>(DEPLOYMENTS),
    replicaSets: follow<ReplicaSet>(REPLICA_SETS),
    daemonSets: follow<DaemonSet>(DAEMON_SETS),
    controllerRevisions: follow<ControllerRevision>(CONTROLLER_REVISIONS),
    jobs: follow<Job>(JOBS),
    budgets: follow<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS),
    leases: follow<Lease>(LEASES),
    persistentVolumes: follow<PersistentVolume>(PERSISTENT_VOLUMES),
    persistentVolumeClaims: follow<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS),
    crds: follow(CRDS),
    apiServices: follow(API_SERVICES),
  };
  const all = [...open.values()];
  return {
    ...informers,
    podsByOwner: new ObjectIndex(informers.pods, ownerUid),
    podsByNode: new ObjectIndex(informers.pods, (pod) => (pod.spec.nodeName ? [pod.spec.nodeName] : [])),
    orphanPods: new ObjectIndex(informers.pods, (pod) => (controllerOf(pod) ? [] : [pod.metadata.namespace ?? ""])),
    replicaSetsByOwner: new ObjectIndex(informers.replicaSets, ownerUid),
    revisionsByOwner: new ObjectIndex(informers.controllerRevisions, ownerUid),
    slicesByService: new ObjectIndex(informers.endpointSlices, serviceOf),
    following: (kind) => open.get(resourceName(kind)),
    synced: Promise.all(all.map((informer) => informer.synced)).then(() => undefined),
    stop: async () => {
      await Promise.all(all.map((informer) => informer.stop()));
    },
  };
}

function resourceName({ group, plural }: ResourceKind): string {
  return `${plural}.${group}`;
}

function ownerUid(object: KubeObject): string[] {
  const owner = controllerOf(object);
  return owner ? [owner.uid] : [];
}

function serviceOf(slice: EndpointSlice): string[] {
  const service = slice.metadata.labels?.[SERVICE_NAME];
  return service ? [`${slice.metadata.namespace}/${service}`] : [];
}
