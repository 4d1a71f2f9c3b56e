import { loadavg } from "node:os";
import { median } from "../run.ts";
import { type BenchNode, type DataplaneName, makeNode } from "./bench-node.ts";
import { modelFor, type Policies, SERVER } from "./cluster.ts";
import type { TrafficKind } from "./load.ts";
import { LoadProcess } from "./load-process.ts";

/** How much of it all. Times are in milliseconds. */
export interface TrafficPlan {
  counts: readonly number[];
  variants: readonly Policies["variant"][];
  rounds: number;
  warmUp: number;
  length: Record<TrafficKind, number>;
}

export interface TrafficResult {
  plane: DataplaneName;
  policies: Policies;
  setUpMs: number;
  /** One for each round. */
  figures: Record<Figure, number[]>;
}

export type Configuration = Pick<BenchNode, "plane" | "policies">;

/** Requests a second, connections a second, Gbit a second, and seconds of processor time for a Gbit, both ends and the path between. */
export type Figure = "rr" | "crr" | "gbps" | "cpu";

const KINDS: readonly TrafficKind[] = ["rr", "crr", "stream"];
/** A port no policy allows. */
const CLOSED_PORT = 7009;

/**
 * Every plane and every number of policies at once, each in namespaces of its own, and round after round through all of them: what else the
 * machine does meanwhile comes to all alike.
 */
export async function measureTraffic(
  program: string,
  plan: TrafficPlan,
  progress: (text: string) => void,
  configurations: readonly Configuration[] = configurationsOf(plan),
): Promise<{ results: TrafficResult[]; load: number[] }> {
  const nodes: BenchNode[] = [];
  const [client, server] = [new LoadProcess(program), new LoadProcess(program)];
  const load: number[] = [];
  try {
    for (const { plane, policies } of configurations) {
      progress(`${plane}, ${policies.count} policies ${policies.variant}`);
      nodes.push(await makeNode(plane, policies, modelFor(policies)));
    }
    for (const node of nodes) await checkFilter(node, client);
    const results = nodes.map(({ plane, policies, setUpMs }) => ({
      ...{ plane, policies, setUpMs },
      figures: { rr: [], crr: [], gbps: [], cpu: [] } as TrafficResult["figures"],
    }));
    for (let round = 0; round < plan.rounds; round++) {
      progress(`round ${round + 1} of ${plan.rounds}`);
      load.push(loadavg()[0]!);
      // Another first each time, so that nobody always comes after the same.
      for (let at = 0; at < nodes.length; at++) {
        const which = (at + round * 5) % nodes.length;
        await measureNode(nodes[which]!, results[which]!, { client, server, plan });
      }
    }
    return { results, load };
  } finally {
    for (const process of [client, server]) process.stop();
    await Promise.all(nodes.map((node) => node.close()));
  }
}

function configurationsOf({ counts, variants }: TrafficPlan): Configuration[] {
  const all = counts.flatMap((count) => variants.map((variant) => ({ count, variant })));
  const filters = ["ebpf", "nft", "iptables"] as const;
  const plain = { plane: "plain", policies: { count: 0, variant: "idle" } } as const;
  // What counting the connections of pods costs, with the fewest policies: then it is most of what there is.
  const uncounted = (["ebpfNoShare", "nftNoShare"] as const).map((plane) => ({ plane, policies: all[0]! }));
  return [plain, ...all.flatMap((policies) => filters.map((plane) => ({ plane, policies }))), ...uncounted];
}

/** A plane that is fast because it lets everything through would win otherwise. */
async function checkFilter({ plane, policies, client: netns }: BenchNode, client: LoadProcess): Promise<void> {
  client.order({ netns, do: "knock", address: SERVER.address, port: CLOSED_PORT, timeout: 100 });
  const { reached } = await client.answer();
  const open = policies.variant === "idle";
  if (reached !== open) {
    throw new Error(`${plane} ${reached ? "lets through" : "keeps"} a closed port, ${JSON.stringify(policies)}`);
  }
}

interface Bench {
  client: LoadProcess;
  server: LoadProcess;
  plan: TrafficPlan;
}

async function measureNode(
  node: BenchNode,
  { figures }: TrafficResult,
  { client, server, plan }: Bench,
): Promise<void> {
  for (const kind of KINDS) {
    server.order({ netns: node.server, do: "serve", kind });
    await server.answer();
    const { warmUp, length } = plan;
    client.order({ netns: node.client, do: "drive", kind, address: SERVER.address, warmUp, length: length[kind] });
    const { count = 0, seconds = 1, cpu = 0 } = await client.answer();
    const served = (await server.answer()).cpu ?? 0;
    if (kind !== "stream") figures[kind].push(count / seconds);
    else {
      const gbit = (count * 8) / 1e9;
      figures.gbps.push(gbit / seconds);
      // The server also took what came while the client warmed up.
      figures.cpu.push((cpu + (served * seconds) / (seconds + warmUp / 1e3)) / gbit);
    }
  }
}

export interface Summary {
  median: number;
  best: number;
}

export function summary({ figures }: TrafficResult, figure: Figure): Summary {
  const values = figures[figure];
  return { median: median(values), best: figure === "cpu" ? Math.min(...values) : Math.max(...values) };
}
