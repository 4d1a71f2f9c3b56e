import { setImmediate } from "node:timers/promises";
import type { BpfMap } from "../../kernel/bpf/bpf-port.ts";

/** How full a map is. */
export interface MapFill {
  map: string;
  entries: number;
  max: number;
}

/** Maps the programs write what they learn into: when one is full, what was unused longest makes room. Flows are counted when they are tidied. */
const LEARNT = ["affinities", "socket_choices", "socket_peers"] as const;

/** Nobody knows how many entries such a map has without counting them. */
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
