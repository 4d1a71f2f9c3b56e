import { addressesInUse } from "../../src/agent/ipam/addresses-in-use.ts";
import { IP_RESERVATIONS, IPAM_CONFIGURATIONS, typeOf } from "../../src/agent/stored-kinds.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { ipPool } from "../../src/api/resources/ip-pool.ts";
import { allocationsOf } from "../../src/api/resources/ipam-allocation.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import type { Transport } from "../../src/api/transport.ts";
import { type Client, createClient } from "../../src/cluster/client.ts";
import { errors } from "../../src/cluster/errors.ts";
import { createInformer } from "../../src/cluster/informer.ts";
import { NODES, PODS } from "../../src/cluster/kinds.ts";
import { nodeHolder } from "../../src/ipam/block-holder.ts";
import { createIpam, type Ipam } from "../../src/ipam/ipam.ts";
import {
  type Affinity,
  BLOCK_AFFINITIES,
  type Block,
  type Handle,
  IPAM_BLOCKS,
  IPAM_HANDLES,
  type IpamConfiguration,
  type Pool,
  type Reservation,
} from "../../src/ipam/ipam-kinds.ts";
import type { ControllersLab } from "../controllers/controllers-lab.ts";

const POOLS = placesOf(ipPool, vendorNames).stored;

/** Address management of some nodes over one API server, each node's agent killed at any write. */
export interface IpamLab {
  pools: Pool[];
  agent(node: string, found?: FoundOnNode): Promise<IpamAgent>;
  blocks(): Promise<Block[]>;
  handles(): Promise<Handle[]>;
  affinities(): Promise<Affinity[]>;
  /** `ADDRESS HANDLE` of everything given out, ordered. */
  givenOut(): Promise<string[]>;
  configure(spec: Partial<IpamConfiguration["spec"]>): Promise<void>;
  reserve(...reservedCIDRs: string[]): Promise<void>;
}

/** What an agent finds on its node when it starts. */
type FoundOnNode = Partial<Pick<Parameters<typeof addressesInUse>[0], "records" | "routes">>;

export interface IpamAgent {
  ipam: Ipam;
  /** The write after so many is its last: it is done, or lost on the way, and the agent is no more. */
  dieAfter(writes: number, done: boolean): void;
  dead(): boolean;
  stop(): Promise<void>;
}

export async function ipamLab(world: ControllersLab, cidrs: { cidr: string; blockSize: number }[]): Promise<IpamLab> {
  const { client } = world;
  const pools: Pool[] = [];
  for (const [at, spec] of cidrs.entries()) {
    const pool = { ...typeOf(POOLS), metadata: { name: `pool-${at}` }, spec } as unknown as Pool;
    pools.push((await client.create(POOLS, pool)) as Pool);
  }
  const list = async <T extends KubeObject>(kind: Parameters<Client["list"]>[0]) => (await client.list<T>(kind)).items;
  const blocks = () => list<Block>(IPAM_BLOCKS);
  return {
    pools,
    blocks,
    handles: () => list<Handle>(IPAM_HANDLES),
    affinities: () => list<Affinity>(BLOCK_AFFINITIES),
    givenOut: async () =>
      (await blocks())
        .flatMap(allocationsOf)
        .map(({ address, handle }) => `${address} ${handle}`)
        .sort(),
    async configure(spec) {
      await client.create(IPAM_CONFIGURATIONS, {
        ...typeOf(IPAM_CONFIGURATIONS),
        metadata: { name: "default" },
        spec,
      } as unknown as KubeObject);
    },
    async reserve(...reservedCIDRs) {
      const metadata = { name: "reserved" };
      const object = { ...typeOf(IP_RESERVATIONS), metadata, spec: { reservedCIDRs } };
      await client.create(IP_RESERVATIONS, object as unknown as KubeObject);
    },
    async agent(node, found = {}) {
      await client.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name: node } }).catch(() => {});
      return await startAgent(world.server.transport(), node, found);
    },
  };
}

async function startAgent(transport: Transport, node: string, found: FoundOnNode): Promise<IpamAgent> {
  let [left, lastIsDone, dead] = [Number.POSITIVE_INFINITY, false, false];
  const lost = () => errors.CLUSTER_CONNECTION_LOST("the server", "it was killed");
  const mortal: Transport = {
    async request(request) {
      if (dead) throw lost();
      if (request.method !== "GET" && left-- <= 0) {
        dead = true;
        if (lastIsDone) await transport.request(request);
        throw lost();
      }
      return await transport.request(request);
    },
    close: () => {},
  };
  const client = createClient(mortal, { userAgent: "vendor-node" });
  const reading = createClient(transport, { userAgent: "vendor-node" });
  const blocks = createInformer<Block>(reading, IPAM_BLOCKS);
  const affinities = createInformer<Affinity>(reading, BLOCK_AFFINITIES);
  const configurations = createInformer<IpamConfiguration>(reading, IPAM_CONFIGURATIONS);
  const pools = createInformer<Pool>(reading, POOLS);
  const pods = createInformer<KubeObject>(reading, PODS);
  const reservations = createInformer<Reservation>(reading, IP_RESERVATIONS);
  const informers = [blocks, affinities, configurations, pools, pods, reservations];
  await Promise.all(informers.map(({ synced }) => synced));
  const ipam = createIpam(client, nodeHolder(node), {
    blocks: () => blocks.list(),
    affinities: () => affinities.list(),
    configuration: () => configurations.get("default")?.spec,
    pools: () => pools.list(),
    reservations: () => reservations.list(),
    inUse: () =>
      addressesInUse({
        ...{ node, pods: pods.list(), wasDisconnected: () => false },
        records: found.records ?? [],
        routes: found.routes ?? [],
      }),
  });
  return {
    ipam,
    dieAfter(writes, done) {
      [left, lastIsDone] = [writes, done];
    },
    dead: () => dead,
    async stop() {
      await Promise.all(informers.map((informer) => informer.stop()));
    },
  };
}
