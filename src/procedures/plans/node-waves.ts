import type { SeenNode } from "../observation.ts";
import { errors } from "./plan-errors.ts";

/** How many nodes a wave has: so many, or a share of all, at least one. */
export type WaveSize = { nodes: number } | { percent: number };

export interface WavesInputs {
  /** The node that goes first and alone; chosen where it is left out. */
  canary?: string;
  size: WaveSize;
  /** Nodes on which pods of services run. */
  serving: readonly string[];
}

/** The nodes in the order they change; the first wave is one node, the canary. */
export function nodeWaves(nodes: readonly SeenNode[], inputs: WavesInputs): string[][] {
  const [canary, ...others] = inOrder(nodes, inputs);
  if (canary === undefined) return [];
  const size = waveSize(inputs.size, nodes.length);
  const waves = [[canary]];
  for (let from = 0; from < others.length; from += size) waves.push(others.slice(from, from + size));
  return waves;
}

function waveSize(size: WaveSize, nodes: number): number {
  return "nodes" in size ? size.nodes : Math.max(1, Math.ceil((nodes * size.percent) / 100));
}

/** The canary, then nodes of workloads, then those of the control plane, which all others depend on. */
function inOrder(nodes: readonly SeenNode[], { canary, serving }: WavesInputs): string[] {
  const serves = new Set(serving);
  const sorted = [...nodes].sort(
    (a, b) => Number(a.controlPlane) - Number(b.controlPlane) || (a.name < b.name ? -1 : 1),
  );
  const chosen =
    sorted.find(({ name }) => name === canary) ??
    sorted.find(({ name, controlPlane, ready }) => !controlPlane && ready && serves.has(name)) ??
    sorted[0];
  return chosen ? [chosen.name, ...sorted.map(({ name }) => name).filter((name) => name !== chosen.name)] : [];
}

export function linuxNodes(nodes: readonly SeenNode[]): SeenNode[] {
  return nodes.filter(({ operatingSystem }) => operatingSystem !== "windows");
}

export function refuseUnknownCanary(nodes: readonly SeenNode[], canary: string | undefined): void {
  if (canary === undefined || nodes.some(({ name }) => name === canary)) return;
  throw errors.CANARY_NODE_UNKNOWN(canary, nodes.map(({ name }) => name).join(", "));
}

/** The nodes for canary traffic: the one that changes first, then those that change last. */
export function bothEnds(waves: readonly (readonly string[])[]): string[] {
  const nodes = waves.flat();
  return [...nodes.slice(0, 1), ...nodes.slice(1).reverse()];
}
