import { type LocalCluster, startCluster } from "../../../src/local/cluster.ts";
import { kubeconfigFor } from "../../../src/local/kubeconfig-file.ts";
import { type ClusterState, settledState, untilState } from "../../support/procedure-state.ts";
import { type CountingProxy, type Moment, startCountingProxy } from "./counting-proxy.ts";
import type { SweptProcedure } from "./procedures.ts";
import { type Ended, openTool, type Tool } from "./tool-process.ts";

/** What a sweep came to: how often vendorctl was killed, how often all was well afterwards, and what was not. */
export interface SweepResult {
  name: string;
  calls: { forward: number; back: number };
  killed: number;
  recovered: number;
  problems: string[];
}

/** At which calls to kill: every one, or so many of each way and moment, spread over all. */
export type Choice = "every" | number;

type Way = "forward" | "back";

const DEATHS: readonly { way: Way; moment: Moment }[] = [
  { way: "forward", moment: "before" },
  { way: "forward", moment: "after" },
  { way: "back", moment: "before" },
  { way: "back", moment: "after" },
];

/**
 * Kills vendorctl at call after call of a procedure, on the way there and on the way back. Each time `resume` must end where an undisturbed
 * run ends and `rollback` where it began, object by object; so one cluster serves for all.
 */
export async function sweep(procedure: SweptProcedure, choice: Choice): Promise<SweepResult> {
  const cluster = await startCluster({ name: "sweep", ...procedure.cluster });
  const proxy = await startCountingProxy(cluster);
  const tool = openTool(kubeconfigFor("sweep", proxy.url, cluster.keys));
  try {
    return await sweepOn({ procedure, cluster, proxy, tool }, choice);
  } finally {
    tool.close();
    await proxy.close();
    await cluster.close();
  }
}

interface Bench {
  procedure: SweptProcedure;
  cluster: LocalCluster;
  proxy: CountingProxy;
  tool: Tool;
}

interface States {
  initial: ClusterState;
  done: ClusterState;
}

async function sweepOn(bench: Bench, choice: Choice): Promise<SweepResult> {
  const { procedure, cluster, proxy, tool } = bench;
  await procedure.seed?.(cluster);
  for (const argv of procedure.before ?? []) must(await tool.run(...argv, "-y"));
  const initial = await settledState(cluster.client);
  const forward = await counted(proxy, () => tool.run(...procedure.argv, "-y"));
  const done = await settledState(cluster.client);
  const back = await counted(proxy, () => tool.run("rollback", "-y"));
  const result: SweepResult = { name: procedure.name, calls: { forward, back }, killed: 0, recovered: 0, problems: [] };
  const left = await untilState(cluster.client, initial);
  if (left.length > 0) result.problems.push(...left.map((text) => `undisturbed, rolled back: ${text}`));
  for (const [turn, { way, moment }] of DEATHS.entries()) {
    for (const k of chosen(result.calls[way], choice, (turn + 0.5) / DEATHS.length)) {
      const problems = await killAt(bench, { initial, done }, way, moment, k);
      if (problems === "was over") continue;
      result.killed++;
      if (problems.length === 0) result.recovered++;
      result.problems.push(...problems.map((text) => `${way}, killed ${moment} call ${k}: ${text}`));
    }
  }
  return result;
}

/** One death and what comes after it; the cluster is in its initial state again when all is well. */
async function killAt(
  bench: Bench,
  states: States,
  way: Way,
  moment: Moment,
  k: number,
): Promise<string[] | "was over"> {
  const { procedure, cluster, proxy, tool } = bench;
  const problems: string[] = [];
  if (way === "back") must(await tool.run(...procedure.argv, "-y"));
  const argv = way === "forward" ? procedure.argv : ["rollback"];
  const victim = await killed(bench, [...argv, "-y"], k, moment);
  const where = proxy.calls[k - 1];
  proxy.disarm();
  if (victim.signal !== "SIGKILL" && way === "forward") {
    // Waits make a few calls more or less each time; this time there were fewer.
    must(await tool.run("rollback", "-y"));
    await untilState(cluster.client, states.initial);
    return "was over";
  }
  const after = await tool.run("resume", "-y", "-o", "json");
  if (after.status !== 0 && !isNothingToResume(after)) problems.push(`resume: ${lastWord(after)}`);
  if (way === "forward") {
    if (isNothingToResume(after) && !(await newestIs(tool, "done"))) must(await tool.run(...procedure.argv, "-y"));
    problems.push(...(await untilState(cluster.client, states.done)).map((text) => `resumed: ${text}`));
    const back = await tool.run("rollback", "-y");
    if (back.status !== 0) problems.push(`rollback: ${lastWord(back)}`);
  } else if (isNothingToResume(after) && (await newestIs(tool, "done"))) must(await tool.run("rollback", "-y"));
  problems.push(...(await untilState(cluster.client, states.initial)).map((text) => `rolled back: ${text}`));
  return problems.map((text) => `(${where}) ${text}`);
}

async function killed({ proxy, tool }: Bench, argv: readonly string[], k: number, moment: Moment): Promise<Ended> {
  const struck: { child?: ReturnType<Tool["start"]> } = {};
  proxy.arm(k, moment, async () => struck.child?.kill());
  struck.child = tool.start(...argv);
  return await struck.child.ended;
}

async function counted(proxy: CountingProxy, run: () => Promise<Ended>): Promise<number> {
  proxy.disarm();
  must(await run());
  return proxy.calls.length;
}

/** Each way and moment takes other places of the same spread, so that few together see much. */
function chosen(calls: number, choice: Choice, phase: number): number[] {
  if (choice === "every" || choice >= calls) return Array.from({ length: calls }, (_, at) => at + 1);
  return Array.from({ length: choice }, (_, at) => Math.floor(((at + phase) * calls) / choice) + 1);
}

const isNothingToResume = ({ err }: Ended) => err.includes('"RUN_NONE"');

async function newestIs(tool: Tool, outcome: string): Promise<boolean> {
  const { out } = await tool.run("history", "-o", "json");
  const [newest] = JSON.parse(out || "[]") as { outcome: string }[];
  return newest?.outcome === outcome;
}

function must(ended: Ended): void {
  if (ended.status !== 0) throw new Error(`vendorctl ended with ${ended.status ?? ended.signal}: ${lastWord(ended)}`);
}

const lastWord = ({ err, out, status }: Ended) => `${status}: ${(err || out).trim().split("\n").slice(-3).join(" | ")}`;
