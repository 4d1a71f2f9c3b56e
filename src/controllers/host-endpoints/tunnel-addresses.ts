import type { IPAMBlock } from "../../api/resources/ipam.ts";
import { allocationsOf } from "../../api/resources/ipam-allocation.ts";
import type { Informer } from "../../cluster/informer.ts";
import type { Stored } from "../informers.ts";

/** Which addresses the tunnels of each node have, kept up to date with the blocks they are from. */
export interface TunnelAddresses {
  of(node: string): string[];
  stop(): void;
}

export function tunnelAddresses(blocks: Informer<Stored<IPAMBlock>>): TunnelAddresses {
  /** Node -> block -> addresses: a block of one node may lend an address to another. */
  const byNode = new Map<string, Map<string, string[]>>();
  const nodesOf = new Map<string, string[]>();

  const forget = (block: string) => {
    for (const node of nodesOf.get(block) ?? []) {
      const ofNode = byNode.get(node);
      ofNode?.delete(block);
      if (ofNode?.size === 0) byNode.delete(node);
    }
    nodesOf.delete(block);
  };
  const learn = (name: string, block: IPAMBlock) => {
    const tunnels = tunnelsIn(block);
    for (const [node, addresses] of tunnels) {
      const ofNode = byNode.get(node) ?? new Map<string, string[]>();
      byNode.set(node, ofNode.set(name, addresses));
    }
    if (tunnels.size > 0) nodesOf.set(name, [...tunnels.keys()]);
  };
  const stop = blocks.onChange(({ type, key, object }) => {
    forget(key);
    if (type !== "deleted") learn(key, object);
  });
  return {
    // By block, so that the order does not depend on which was seen first.
    of: (node) => [...(byNode.get(node) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, list]) => list),
    stop,
  };
}

/** The addresses of tunnels in one block, by node. */
export function tunnelsIn(block: IPAMBlock): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { address, owner } of allocationsOf(block)) {
    if (owner.kind === "tunnel") found.set(owner.node, [...(found.get(owner.node) ?? []), address]);
  }
  return found;
}
