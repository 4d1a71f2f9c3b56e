import type { IPAMBlock } from "../api/resources/ipam.ts";

/** What a block belongs to: one node, or something that is on no node. */
export interface BlockHolder {
  type: "host" | "virtual";
  name: string;
}

/** Addresses of Services: every node serves them. The words are those of the public system. */
export const LOAD_BALANCERS: BlockHolder = { type: "virtual", name: "load-balancer" };

export function nodeHolder(name: string): BlockHolder {
  return { type: "host", name };
}

export function affinityOf({ type, name }: BlockHolder): string {
  return `${type}:${name}`;
}

export function holds(holder: BlockHolder, { spec }: IPAMBlock): boolean {
  return spec.affinity === affinityOf(holder);
}
