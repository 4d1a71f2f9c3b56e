import { vendorNames } from "../api/names.ts";
import type { KubeObject, ResourceKind } from "../api/object.ts";
import type { Calculator } from "../calc/calculator.ts";
import { calculatorKinds, type InputName } from "../calc/calculator-kinds.ts";
import { stagedKinds } from "../calc/policy/staged-policy.ts";
import type { Client } from "../cluster/client.ts";
import { createInformer, type Informer } from "../cluster/informer.ts";
import { slimReading } from "../cluster/slim-reading.ts";
import type { Affinity, Block, IpamConfiguration, Pool, Reservation } from "../ipam/ipam-kinds.ts";
import type { Log } from "../kit/log.ts";
import {
  BGP_CONFIGURATIONS,
  BGP_FILTERS,
  BGP_PEERS,
  type BgpConfiguration,
  type BgpFilter,
  type BgpPeer,
  IP_RESERVATIONS,
  IPAM_CONFIGURATIONS,
  NODE_STATUSES,
  type NodeStatus,
} from "./stored-kinds.ts";

const OF_SERVICES: ReadonlySet<InputName> = new Set(["services", "endpointSlices"]);

/** How nodes speak BGP. */
export interface BgpObjects {
  configurations: Informer<BgpConfiguration>;
  peers: Informer<BgpPeer>;
  filters: Informer<BgpFilter>;
  /** What is asked of nodes. */
  statuses: Informer<NodeStatus>;
}

/** Everything the agent follows of its cluster, one copy of each kind. What it knows it keeps while the API server is away. */
export interface WatchedObjects {
  pods: Informer<KubeObject>;
  nodes: Informer<KubeObject>;
  namespaces: Informer<KubeObject>;
  pools: Informer<Pool>;
  blocks: Informer<Block>;
  affinities: Informer<Affinity>;
  ipamConfigurations: Informer<IpamConfiguration>;
  reservations: Informer<Reservation>;
  hostEndpoints: Informer<KubeObject>;
  networkSets: Informer<KubeObject>;
  globalNetworkSets: Informer<KubeObject>;
  /** None where Services are not followed. */
  services: Informer<KubeObject> | undefined;
  endpointSlices: Informer<KubeObject> | undefined;
  /** None where the node does not speak BGP. */
  bgp: BgpObjects | undefined;
  /** All of the kinds that policy is calculated of, as they are known now. */
  ofCalculation(): Iterable<KubeObject>;
  /** Kinds whose first list is not in yet. */
  waitingFor(): string[];
  /** Every kind has been listed once. */
  synced: Promise<void>;
  stop(): Promise<void>;
}

/** Feeds the calculation with every kind it reads, and says when there is something new. */
export function watchObjects(
  client: Client,
  calculator: Calculator,
  changed: () => void,
  { services, bgp, log }: { services: boolean; bgp: boolean; log: Log },
): WatchedObjects {
  const waiting = new Set<string>();
  const all: Informer<KubeObject>[] = [];
  const reading = slimReading<KubeObject>(client, withoutManagedFields);
  const follow = (kind: ResourceKind): Informer<KubeObject> => {
    const onError = (error: unknown) => log.warn({ kind: kind.plural, error }, "watch failed, retrying");
    const informer = createInformer<KubeObject>(reading, kind, { onError });
    waiting.add(kind.plural);
    void informer.synced.then(() => waiting.delete(kind.plural));
    all.push(informer);
    return informer;
  };
  const inputs = new Map<InputName, Informer<KubeObject>>();
  for (const [name, kind] of calculatorKinds(vendorNames)) {
    if (!services && OF_SERVICES.has(name)) continue;
    const informer = follow(kind);
    inputs.set(name, informer);
    informer.onChange(({ type, object }) => {
      if (type === "deleted") calculator.remove(kind, object.metadata);
      else calculator.set(object);
      changed();
    });
  }
  // Nothing waits for them: they are never enforced, and an older cluster has no such kinds.
  const staged = stagedKinds(vendorNames).map(({ staged: kind }) => {
    const onError = (error: unknown) => log.debug({ kind: kind.plural, error }, "watch failed, retrying");
    const informer = createInformer<KubeObject>(reading, kind, { onError });
    informer.onChange(({ type, object }) => {
      if (type === "deleted") calculator.remove(kind, object.metadata);
      else calculator.set(object);
    });
    return informer;
  });
  const ipamConfigurations = follow(IPAM_CONFIGURATIONS) as unknown as Informer<IpamConfiguration>;
  const reservations = follow(IP_RESERVATIONS) as unknown as Informer<Reservation>;
  const followBgp = <T extends KubeObject>(kind: ResourceKind) => {
    const informer = follow(kind);
    informer.onChange(changed);
    return informer as unknown as Informer<T>;
  };
  const bgpObjects = bgp
    ? {
        configurations: followBgp<BgpConfiguration>(BGP_CONFIGURATIONS),
        peers: followBgp<BgpPeer>(BGP_PEERS),
        filters: followBgp<BgpFilter>(BGP_FILTERS),
        statuses: follow(NODE_STATUSES) as unknown as Informer<NodeStatus>,
      }
    : undefined;
  const of = <T extends KubeObject>(name: InputName) => inputs.get(name) as unknown as Informer<T>;
  const synced = Promise.all(all.map((informer) => informer.synced)).then(() => {
    calculator.inSync();
    changed();
  });
  return {
    pods: of("pods"),
    nodes: of("nodes"),
    namespaces: of("namespaces"),
    pools: of("pools"),
    blocks: of("blocks"),
    affinities: of("affinities"),
    ipamConfigurations,
    reservations,
    hostEndpoints: of("hostEndpoints"),
    networkSets: of("networkSets"),
    globalNetworkSets: of("globalNetworkSets"),
    services: services ? of("services") : undefined,
    endpointSlices: services ? of("endpointSlices") : undefined,
    bgp: bgpObjects,
    *ofCalculation() {
      for (const informer of inputs.values()) yield* informer.list();
    },
    waitingFor: () => [...waiting],
    synced,
    async stop() {
      await Promise.all([...all, ...staged].map((informer) => informer.stop()));
    },
  };
}

/** Who owns which field is the server's to keep, and often the larger part of an object. */
function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
