import type { KubeObject } from "../../src/api/object.ts";
import type { IPAMBlock } from "../../src/api/resources/ipam.ts";
import { allocationsOf } from "../../src/api/resources/ipam-allocation.ts";
import type { Client } from "../../src/cluster/client.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../../src/cluster/failures.ts";
import { NODES, PODS } from "../../src/cluster/kinds.ts";
import { BLOCK_AFFINITIES, IPAM_BLOCKS, IPAM_HANDLES, typeOf } from "../../src/controllers/stored-kinds.ts";

/** Gives addresses out and takes them back as the agents do, through the same API, in the same order: handle, block, pod. */
export type Block = KubeObject & IPAMBlock;
type Handle = KubeObject & { spec: { handleID: string; block: Record<string, number> } };

export interface SimulatedPod {
  name: string;
  node: string;
  address: string;
  handle: string;
}

export interface SimulatedIpam {
  addNode(name: string): Promise<void>;
  /** The node and, as the orchestrator does, its pods; nobody releases their addresses. */
  removeNode(name: string): Promise<void>;
  /** `quiet`: the pod has its address, but the orchestrator has not been told. `from`: out of another node's block. */
  addPod(name: string, node: string, options: { quiet: boolean; from: string }): Promise<SimulatedPod>;
  /** The pod tells the orchestrator its address at last. */
  report(pod: SimulatedPod): Promise<void>;
  /** `clean` releases; `half` is stopped between block and handle; `leak` never gets to it. */
  removePod(pod: SimulatedPod, how: "clean" | "half" | "leak"): Promise<void>;
  blocks(): Promise<Block[]>;
  handles(): Promise<Handle[]>;
  affinities(): Promise<KubeObject[]>;
}

export function simulatedIpam(client: Client): SimulatedIpam {
  let serial = 0;
  const list = async <T extends KubeObject>(kind: Parameters<Client["list"]>[0]) => (await client.list<T>(kind)).items;
  const blocks = () => list<Block>(IPAM_BLOCKS);

  /** Reads, changes, writes; again when somebody else wrote in between. */
  const change = async (name: string, edit: (block: Block) => Block): Promise<Block> => {
    for (;;) {
      try {
        return await client.replace(IPAM_BLOCKS, edit(await client.get<Block>(IPAM_BLOCKS, { name })));
      } catch (error) {
        if (!isConflict(error)) throw error;
      }
    }
  };
  const newBlock = async (node: string): Promise<Block> => {
    for (let index = 0; ; index++) {
      const cidr = `10.${index >> 6}.${(index & 63) * 4}.0/30`;
      const name = cidr.replace(/[./]/g, "-");
      const spec = {
        cidr,
        affinity: `host:${node}`,
        allocations: [null, null, null, null],
        unallocated: [0, 1, 2, 3],
        attributes: [],
      };
      try {
        const made = await client.create(IPAM_BLOCKS, { ...typeOf(IPAM_BLOCKS), metadata: { name }, spec });
        const claim = { state: "confirmed", node, cidr, type: "host" };
        await client.create(BLOCK_AFFINITIES, {
          ...typeOf(BLOCK_AFFINITIES),
          metadata: { name: `${node}-${name}` },
          spec: claim,
        });
        return made as unknown as Block;
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
      }
    }
  };
  const assign = async (from: string, handle: string, secondary: Record<string, string>): Promise<string> => {
    const free = (await blocks()).find(({ spec }) => spec.affinity === `host:${from}` && spec.unallocated.length > 0);
    const block = free ?? (await newBlock(from));
    const count = { [block.spec.cidr]: 1 };
    await client.create(IPAM_HANDLES, {
      ...typeOf(IPAM_HANDLES),
      metadata: { name: handle },
      spec: { handleID: handle, block: count },
    });
    const taken: number[] = [];
    const written = await change(block.metadata.name, ({ spec, ...rest }) => {
      const [ordinal = -1, ...unallocated] = spec.unallocated;
      taken.splice(0, 1, ordinal);
      const allocations = spec.allocations.map((index, at) => (at === ordinal ? spec.attributes.length : index));
      const sequence = (spec.sequenceNumber ?? 0) + 1;
      const next = {
        ...spec,
        allocations,
        unallocated,
        attributes: [...spec.attributes, { handle_id: handle, secondary }],
        sequenceNumber: sequence,
        sequenceNumberForAllocation: { ...spec.sequenceNumberForAllocation, [String(ordinal)]: sequence },
      };
      return { ...rest, spec: next } as unknown as Block;
    });
    return allocationsOf(written).find(({ ordinal }) => ordinal === taken[0])?.address as string;
  };
  const release = async (address: string, handle: string): Promise<void> => {
    const block = (await blocks()).find((one) =>
      allocationsOf(one).some((has) => has.address === address && has.handle === handle),
    );
    if (!block) return;
    await change(block.metadata.name, (fresh) => freed(fresh, handle));
  };

  const report = async ({ name, address }: SimulatedPod): Promise<void> => {
    const pod = await client.get<KubeObject>(PODS, { namespace: "default", name });
    const status = { phase: "Running", podIP: address, podIPs: [{ ip: address }] };
    await client.replace(PODS, { ...pod, status }, { subresource: "status" });
  };

  return {
    blocks,
    report,
    handles: () => list<Handle>(IPAM_HANDLES),
    affinities: () => list(BLOCK_AFFINITIES),
    async addNode(name) {
      await client.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name } });
      const handle = `vxlan-tunnel-addr-${name}`;
      const has = (await blocks()).some((block) => allocationsOf(block).some((one) => one.handle === handle));
      if (has) return;
      await client.delete(IPAM_HANDLES, { name: handle }).catch(unlessDeleted);
      await assign(name, handle, { node: name, type: "vxlanTunnelAddress" });
    },
    async removeNode(name) {
      await client.delete(NODES, { name });
      const pods = await list<KubeObject & { spec: { nodeName: string } }>(PODS);
      for (const { metadata, spec } of pods) {
        if (spec.nodeName === name)
          await client.delete(PODS, { namespace: "default", name: metadata.name }, { gracePeriodSeconds: 0 });
      }
    },
    async addPod(name, node, { quiet, from }) {
      const handle = `k8s-pod-network.${name}.${serial++}`;
      const pod = {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace: "default" },
        spec: { nodeName: node, containers: [{ name: "main", image: "web" }] },
      };
      await client.create(PODS, pod);
      const address = await assign(from, handle, { node, pod: name, namespace: "default" });
      const made = { name, node, address, handle };
      if (!quiet) await report(made);
      return made;
    },
    async removePod({ name, address, handle }, how) {
      if (how !== "leak") await release(address, handle);
      if (how === "clean") await client.delete(IPAM_HANDLES, { name: handle }).catch(unlessDeleted);
      await client.delete(PODS, { namespace: "default", name }, { gracePeriodSeconds: 0 }).catch(unlessDeleted);
    },
  };
}

function freed(block: Block, handle: string): Block {
  const { spec } = block;
  const ordinals = allocationsOf(block)
    .filter((one) => one.handle === handle)
    .map(({ ordinal }) => ordinal);
  const allocations = spec.allocations.map((index, at) => (ordinals.includes(at) ? null : index));
  const next = {
    ...spec,
    allocations,
    unallocated: [...spec.unallocated, ...ordinals],
    sequenceNumber: (spec.sequenceNumber ?? 0) + 1,
  };
  return { ...block, spec: next };
}

function unlessDeleted(error: unknown): void {
  if (!isNotFound(error)) throw error;
}
