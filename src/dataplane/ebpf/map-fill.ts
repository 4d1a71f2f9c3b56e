import { setImmediate } from "node:timers/promises";
import type { BpfMap } from "../../kernel/bpf/bpf-port.ts";

/** How full a map is. */
export interface MapFill {
  map: string;
  entries: number;
  max: number;
}

/** Maps that the programs fill: when one is full, the least recently used entries are evicted. Conntrack entries are counted when they are expired. */
const LEARNT = ["affinities", "socket_choices", "socket_peers"] as const;

/** The number of entries of such a map is only known by counting. */
export async function countLearnt(map: (name: string) => BpfMap): Promise<MapFill[]> {
  const fills: MapFill[] = [];
  for (const name of LEARNT) fills.push(fillOf(map(name), await count(map(name))));
  return fills;
}

/** The kernel keeps some entries of a map ready on each processor, so that few maps are ever full to the last one. */
export function isFull({ entries, max }: MapFill): boolean {
  return entries >= max * 0.95;
}

export function fillOf({ info }: BpfMap, entries: number): MapFill {
  return { map: info.name, entries, max: info.maxEntries };
}

async function count(map: BpfMap): Promise<number> {
  let entries = 0;
  for (const chunk of map.chunks(4096)) {
    entries += chunk.length;
    await setImmediate();
  }
  return entries;
}
