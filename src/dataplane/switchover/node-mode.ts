/** The node's mode, read and written by its pin alone: for processes without loaded programs, and also when the agent is dead. */
import { randomInt } from "node:crypto";
import type { DataplaneState } from "../../api/dataplane.ts";
import { NODE_FIELD } from "../../gen/bpf/layout.gen.ts";
import type { BpfMap, BpfPort } from "../../kernel/bpf/bpf-port.ts";
import { mapDirectory, otherMapDirectories, u32 } from "../ebpf/programs/programs.ts";
import { STATE_NUMBERS, stateOfNumber } from "../ebpf/state-number.ts";

/** As many as fit into half of a mark, but for 0. */
const MOST_GENERATIONS = 0xffff;

/** What programs of any release do on this node; undefined where there are none. Our own release's word comes first. */
export function pinnedMode(bpf: BpfPort, pinDirectory: string): DataplaneState | undefined {
  for (const directory of layouts(bpf, pinDirectory)) {
    const number = readField(bpf, directory, NODE_FIELD.NODE_MODE);
    const found = stateOfNumber(number);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Turns every release's programs off; how many there were. They stay where they are and touch nothing. */
export function turnOffPinned(bpf: BpfPort, pinDirectory: string): number {
  const there = layouts(bpf, pinDirectory);
  for (const directory of there) writeField(bpf, directory, NODE_FIELD.NODE_MODE, STATE_NUMBERS.Off);
  return there.length;
}

export function flipPinned(bpf: BpfPort, pinDirectory: string): void {
  writeField(bpf, mapDirectory(pinDirectory), NODE_FIELD.NODE_MODE, STATE_NUMBERS.Active);
}

/** The generation first: a program that drains must know which flows were given. */
export function drainPinned(bpf: BpfPort, pinDirectory: string, generation: number): void {
  for (const directory of layouts(bpf, pinDirectory)) {
    writeField(bpf, directory, NODE_FIELD.NODE_GENERATION, generation);
    writeField(bpf, directory, NODE_FIELD.NODE_MODE, STATE_NUMBERS.Draining);
  }
}

/** Of the last drain; 0 before the first. */
export function pinnedGeneration(bpf: BpfPort, pinDirectory: string): number {
  const [directory] = layouts(bpf, pinDirectory);
  return directory === undefined ? 0 : (readField(bpf, directory, NODE_FIELD.NODE_GENERATION) ?? 0);
}

/** Never that of the drain before. The kernel may still have flows of earlier ones, from before the programs were last taken away: the first is any. */
export function nextGeneration(last: number): number {
  return ((last || randomInt(MOST_GENERATIONS)) % MOST_GENERATIONS) + 1;
}

function layouts(bpf: BpfPort, pinDirectory: string): string[] {
  const all = [mapDirectory(pinDirectory), ...otherMapDirectories(bpf, pinDirectory)];
  return all.filter((directory) => bpf.pins(directory).includes("node"));
}

function readField(bpf: BpfPort, directory: string, which: number): number | undefined {
  return withNode(bpf, directory, (map) => map.lookup(u32(which))?.readUInt32LE());
}

function writeField(bpf: BpfPort, directory: string, which: number, value: number): void {
  withNode(bpf, directory, (map) => {
    // Another release may have fewer words, and then no use for them.
    if (which < map.info.maxEntries) map.update(u32(which), u32(value));
  });
}

function withNode<T>(bpf: BpfPort, directory: string, act: (map: BpfMap) => T): T {
  const map = bpf.openMap(`${directory}/node`);
  try {
    return act(map);
  } finally {
    map.close();
  }
}
