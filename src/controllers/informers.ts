import type { KubeObject, ResourceKind } from "../api/object.ts";
import type { DataplaneConfiguration } from "../api/resources/dataplane-configuration.ts";
import type { HostEndpoint } from "../api/resources/host-endpoint.ts";
import type { IPPool } from "../api/resources/ip-pool.ts";
import type { IPReservation } from "../api/resources/ip-reservation.ts";
import type { blockAffinity, IPAMBlock, ipamHandle } from "../api/resources/ipam.ts";
import type { KubeControllersConfiguration } from "../api/resources/kube-controllers-configuration.ts";
import type { Profile } from "../api/resources/profile.ts";
import type { ObjectOf } from "../api/resources/resource.ts";
import type { Client } from "../cluster/client.ts";
import { createInformer, type Informer } from "../cluster/informer.ts";
import { ENDPOINT_SLICES, NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS, SERVICES } from "../cluster/kinds.ts";
import type { ListWatchOptions } from "../cluster/list-watch.ts";
import { slimReading } from "../cluster/slim-reading.ts";
import type { Log } from "../kit/log.ts";
import {
  type Node,
  type Pod,
  type ServiceObject,
  slimHead,
  slimNode,
  slimPod,
  slimService,
} from "./orchestrator-objects.ts";
import {
  BLOCK_AFFINITIES,
  CONFIGURATIONS,
  DATAPLANE_CONFIGURATIONS,
  HOST_ENDPOINTS,
  IP_POOLS,
  IP_RESERVATIONS,
  IPAM_BLOCKS,
  IPAM_HANDLES,
  PROFILES,
} from "./stored-kinds.ts";

export type Stored<T> = KubeObject & T;
export type BlockAffinity = Stored<ObjectOf<typeof blockAffinity>>;
export type IPAMHandle = Stored<ObjectOf<typeof ipamHandle>>;

/** One copy of each kind, shared by all controllers. */
export interface Informers {
  nodes: Informer<Node>;
  pods: Informer<Pod>;
  namespaces: Informer<KubeObject>;
  serviceAccounts: Informer<KubeObject>;
  hostEndpoints: Informer<Stored<HostEndpoint>>;
  profiles: Informer<Stored<Profile>>;
  blocks: Informer<Stored<IPAMBlock>>;
  affinities: Informer<BlockAffinity>;
  handles: Informer<IPAMHandle>;
  configurations: Informer<Stored<KubeControllersConfiguration>>;
  services: Informer<ServiceObject>;
  pools: Informer<Stored<IPPool>>;
  reservations: Informer<Stored<IPReservation>>;
  dataplaneConfigurations: Informer<Stored<DataplaneConfiguration>>;
  /** The one slice in which the API server names its own addresses. */
  apiServerSlice: Informer<KubeObject>;
}

export interface RunningInformers {
  informers: Informers;
  /** Kinds whose first list is not in yet. */
  waitingFor(): string[];
  stop(): Promise<void>;
}

export function startInformers(client: Client, log: Log): RunningInformers {
  const waiting = new Set<string>();
  const running: Informer<never>[] = [];
  const follow = <T extends KubeObject>(
    kind: ResourceKind,
    slim: (object: T) => KubeObject,
    selection: Pick<ListWatchOptions, "namespace" | "fieldSelector"> = {},
  ): Informer<T> => {
    const onError = (error: unknown) => log.warn({ kind: kind.plural, error }, "watch failed, retrying");
    const informer = createInformer<T>(slimReading<T>(client, slim), kind, { ...selection, onError });
    waiting.add(kind.plural);
    void informer.synced.then(() => waiting.delete(kind.plural));
    running.push(informer as unknown as Informer<never>);
    return informer;
  };
  const informers: Informers = {
    nodes: follow(NODES, slimNode),
    pods: follow(PODS, slimPod),
    namespaces: follow(NAMESPACES, slimHead),
    serviceAccounts: follow(SERVICE_ACCOUNTS, slimHead),
    hostEndpoints: follow(HOST_ENDPOINTS, withoutManagedFields),
    profiles: follow(PROFILES, withoutManagedFields),
    blocks: follow(IPAM_BLOCKS, withoutManagedFields),
    affinities: follow(BLOCK_AFFINITIES, withoutManagedFields),
    handles: follow(IPAM_HANDLES, withoutManagedFields),
    configurations: follow(CONFIGURATIONS, withoutManagedFields),
    services: follow(SERVICES, slimService),
    pools: follow(IP_POOLS, withoutManagedFields),
    reservations: follow(IP_RESERVATIONS, withoutManagedFields),
    dataplaneConfigurations: follow(DATAPLANE_CONFIGURATIONS, withoutManagedFields),
    apiServerSlice: follow(ENDPOINT_SLICES, withoutManagedFields, {
      namespace: "default",
      fieldSelector: "metadata.name=kubernetes",
    }),
  };
  return {
    informers,
    waitingFor: () => [...waiting],
    async stop() {
      await Promise.all(running.map((informer) => informer.stop()));
    },
  };
}

/** Who owns which field is the server's to keep: an update without them leaves them as they are. */
function withoutManagedFields<T extends KubeObject>(object: T): T {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
