import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { NEIGHBOURS } from "./pods/cluster.ts";
import { rowsOf } from "./pods/figures.ts";
import { load } from "./pods/load.ts";
import { page } from "./pods/page.ts";
import { measureReaction, type ReactionPlan } from "./pods/reaction.ts";
import { measureTraffic, type TrafficPlan } from "./pods/traffic.ts";
import type { Row } from "./run.ts";

interface Plan {
  traffic: TrafficPlan;
  reaction: ReactionPlan;
}

const FULL: Plan = {
  traffic: {
    ...{ counts: [10, 1_000, 10_000], variants: ["applying", "idle"], rounds: 9 },
    ...{ warmUp: 30, length: { rr: 150, crr: 250, stream: 150 } },
  },
  reaction: { counts: [100, 1_000], policies: 30, pods: 20 },
};
const QUICK: Plan = {
  traffic: {
    ...{ counts: [10, 1_000], variants: ["applying"], rounds: 4 },
    ...{ warmUp: 20, length: { rr: 100, crr: 200, stream: 100 } },
  },
  reaction: { counts: [100], policies: 8, pods: 5 },
};
const PAGE = "bench/results/pods.html";

/** What filtering costs two pods that speak, on each plane and beside what others use; and how soon a change reaches the packets. */
export async function run(): Promise<Row[]> {
  if (process.argv[2] === "load") {
    load();
    process.exit();
  }
  if (process.getuid?.() !== 0) throw new Error("it makes network namespaces and loads programs: run it as root");
  const plan = process.argv.includes("--quick") ? QUICK : FULL;
  const program = fileURLToPath(import.meta.url);
  const started = performance.now();
  const progress = (text: string) =>
    void process.stderr.write(`${((performance.now() - started) / 1e3).toFixed(0).padStart(4)} s  ${text}\n`);
  const { results, load: loads } = await measureTraffic(program, plan.traffic, progress);
  const reactions = await measureReaction(program, plan.reaction, progress);
  const report = page({
    ...{ traffic: results, reactions },
    machine: machine([...loads, loadavg()[0]!]),
    method: method(plan),
  });
  mkdirSync(join(process.cwd(), PAGE, ".."), { recursive: true });
  writeFileSync(join(process.cwd(), PAGE), report);
  progress(`plots: ${PAGE}`);
  return rowsOf(results, reactions);
}

function machine(loads: readonly number[]): string[] {
  const [least, most] = [Math.min(...loads), Math.max(...loads)].map((load) => load.toFixed(0));
  return [
    `Linux ${release().replace(/-.*/, "")} on ${process.arch}, ${cpus().length} processors, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    `load of the machine during the run ${least} to ${most}`,
    `Node ${process.version}`,
  ];
}

function method({ traffic, reaction }: Plan): string[] {
  const { rr, crr, stream } = traffic.length;
  return [
    `Each plane with each number of policies has a node of its own: namespaces joined by pairs of interfaces as the plugin makes them, with ${NEIGHBOURS} more pods on the node. All are there at once, and ${traffic.rounds} rounds go through all of them.`,
    "Client and server are processes that call the kernel directly, on one processor, before everything else there. So a rate is the cost of the whole path, both ends included, and not how busy the other processor is.",
    `Connections: 16 at a time, one byte there and back, the server closes; ${crr} ms a round. Requests: one byte there and back on one connection; ${rr} ms. Stream: writes of 128 KiB; ${stream} ms. Processor time is of both processes; packets between pods are carried in it.`,
    "Every plane gets the same model, calculated from NetworkPolicies. A hundredth of the policies selects each of a hundred applications, of which twenty run on the node. iptables has the same rules, one line for each prefix, connection tracking first, a chain for each endpoint and for each policy; all but the plain node also give packets that leave the pods' network the node's address.",
    "Before the rounds, a port no policy allows is tried on every node: where policies apply it must stay closed.",
    `Changes: a policy that forbids a flow of pings every 0.3 ms, ${reaction.policies} times, from the request to the API server to the last reply, and from the request that deletes it to the first; ${reaction.pods} pods, from the request to the first reply, the plugin's process included. The agent runs as everything else does, so the machine's load is in these.`,
  ];
}
