import type { ClusterState } from "../../support/procedure-state.ts";
import { type Bench, type Interruption, lastOutput, openBench } from "./bench.ts";
import type { Call } from "./call.ts";
import type { Moment } from "./counting-proxy.ts";
import type { SweptProcedure } from "./procedures.ts";

/**
 * At which calls vendorctl is killed, and how often anybody looks.
 *
 * Between two writes of vendorctl nothing it does changes the cluster, and what it has read dies with it. So a death at any call between
 * them leaves what a death right after the earlier write leaves, and all that can be different is how far the cluster has come by itself.
 * Both ends of that stretch are taken: right after the earlier write was done, before its first read, and right before the later one
 * is done, after its last read. The reads in between are the same cut.
 *
 * - `each`: a run of its own for every write and moment. Killed before it, `resume` must end as an undisturbed run; killed after it,
 *   `rollback` must end in the initial state, at once; and the rollback of the former is killed at one of its own writes.
 * - `relentless`: one run for all writes of a way and moment. Every process is killed at the first write none was killed at before, so a
 *   procedure of sixty writes is cut off sixty times before it ends. Compared when the way is over.
 * - a number: relentless, with so many deaths on each way.
 */
export type Choice = "each" | "relentless" | number;

/** What a sweep came to: how often vendorctl was killed, how often all was well afterwards, and what was not. */
export interface SweepResult {
  calls: Record<Interruption, number>;
  writes: Record<Interruption, number>;
  killed: Record<Interruption, number>;
  recovered: number;
  compared: number;
  problems: string[];
}

/** `runScenario` hears of every death, for who watches hours of it. */
export async function sweep(
  procedure: SweptProcedure,
  choice: Choice,
  tell: (line: string) => void,
): Promise<SweepResult> {
  const result: SweepResult = {
    calls: { there: 0, back: 0 },
    writes: { there: 0, back: 0 },
    killed: { there: 0, back: 0 },
    recovered: 0,
    compared: 0,
    problems: [],
  };
  const opened = await openBench(procedure);
  const bench: Bench = {
    ...opened,
    async struck(aim, argv) {
      const since = performance.now();
      const ended = await opened.struck(aim, argv);
      tell(
        `${argv[0]} ended with ${ended.signal ?? ended.status} after ${seconds(since)} at (${opened.proxy.calls.findLast(({ isWrite }) => isWrite)?.name})`,
      );
      return ended;
    },
  };
  try {
    const there = count(result, "there", await bench.go("there"));
    const done = await bench.state();
    if (choice === "each") await eachByItself(bench, done, there, result);
    else await relentlessly(bench, done, strideOf(choice, there.length), result, tell);
  } finally {
    await bench.close();
  }
  return result;
}

/** Back and there and back and there, and once more back in peace. */
async function relentlessly(
  bench: Bench,
  done: ClusterState,
  stride: number,
  result: SweepResult,
  tell: (line: string) => void,
): Promise<void> {
  const all: readonly { way: Interruption; moment: Moment }[] = [
    { way: "back", moment: "before" },
    { way: "there", moment: "after" },
    { way: "back", moment: "after" },
    { way: "there", moment: "before" },
  ];
  // A few deaths are as good at both moments of different writes.
  for (const { way, moment } of stride === 1 ? all : all.slice(0, 2)) {
    const expected = way === "there" ? done : bench.initial;
    const { deaths, problems } = await killAllAlong(bench, way, moment, stride);
    problems.push(...(await compared(bench, expected, result)));
    result.killed[way] += deaths;
    if (problems.length === 0) result.recovered += deaths;
    result.problems.push(...problems.map((text) => `${way}, killed ${moment} its calls: ${text}`));
    tell(`${way}, killed ${deaths} times ${moment} its calls: ${problems.length} differences`);
    if (problems.length > 0) return;
  }
  if (stride > 1) return;
  count(result, "back", await bench.go("back"));
  result.problems.push(...(await compared(bench, bench.initial, result)).map((text) => `back in peace: ${text}`));
}

const strideOf = (choice: number | "relentless", writes: number): number =>
  choice === "relentless" ? 1 : Math.max(2, Math.ceil(writes / choice));

const MOST_DEATHS = 1_000;

async function killAllAlong(
  bench: Bench,
  way: Interruption,
  moment: Moment,
  stride: number,
): Promise<{ deaths: number; problems: string[] }> {
  const seen = new Set<string>();
  let deaths = 0;
  let last = "its first call";
  const aim = ({ name, isWrite }: Call): Moment | undefined => {
    if (!isWrite || seen.has(name)) return undefined;
    seen.add(name);
    if (seen.size % stride !== Math.floor(stride / 2)) return undefined;
    last = name;
    return moment;
  };
  for (let argv = bench.next(way); argv !== undefined; argv = bench.next(way)) {
    const ended = await bench.struck(aim, argv);
    if (ended.signal === "SIGKILL") deaths++;
    else if (ended.status === 0) break;
    else return { deaths, problems: [`after (${last}), ${argv[0]} ended with ${lastOutput(ended)}`] };
    if (deaths > MOST_DEATHS) return { deaths, problems: [`no end of new calls, the last was (${last})`] };
  }
  return { deaths, problems: [] };
}

async function eachByItself(
  bench: Bench,
  done: ClusterState,
  there: readonly string[],
  result: SweepResult,
): Promise<void> {
  const back = count(result, "back", await bench.go("back"));
  result.problems.push(...(await compared(bench, bench.initial, result)).map((text) => `back in peace: ${text}`));
  const deathsBack = back.flatMap((name) => [
    { name, moment: "before" as const },
    { name, moment: "after" as const },
  ]);
  const judge = (way: Interruption, what: string, problems: readonly string[]) => {
    result.killed[way]++;
    if (problems.length === 0) result.recovered++;
    else result.problems.push(...problems.map((text) => `${way}, ${what}: ${text}`));
  };
  const goBackKilled = async () => {
    const death = deathsBack.shift();
    const problems = death ? await killOnce(bench, "back", death.name, death.moment) : await finish(bench, "back");
    problems.push(...(await compared(bench, bench.initial, result)));
    if (death) judge("back", `killed ${death.moment} (${death.name})`, problems);
    else result.problems.push(...problems.map((text) => `back in peace: ${text}`));
  };
  for (const name of there) {
    const resumed = await killOnce(bench, "there", name, "before");
    resumed.push(...(await compared(bench, done, result)));
    judge("there", `killed before (${name}) and resumed`, resumed);
    await goBackKilled();
    const takenBack = await killOnce(bench, "there", name, "after", "rollback");
    takenBack.push(...(await compared(bench, bench.initial, result)));
    judge("there", `killed after (${name}) and rolled back`, takenBack);
    // What is wrong now stays wrong, and would be told of everything that comes after it.
    if (result.problems.length > 0) return;
  }
  while (deathsBack.length > 0 && result.problems.length === 0) {
    await finish(bench, "there");
    await goBackKilled();
  }
}

/** One death, and one command after it that must end well. */
async function killOnce(
  bench: Bench,
  way: Interruption,
  name: string,
  moment: Moment,
  after: "resume" | "rollback" = "resume",
): Promise<string[]> {
  const aim = (call: Call) => (call.name === name ? moment : undefined);
  const first = await bench.struck(aim, bench.next(way) ?? []);
  if (first.signal !== "SIGKILL") return [`the call did not come: ${lastOutput(first)}`];
  return await finish(bench, after === "rollback" ? "back" : way);
}

/** The way to its end, in one process. */
async function finish(bench: Bench, way: Interruption): Promise<string[]> {
  const argv = way === "back" && bench.proxy.record === undefined ? undefined : bench.next(way);
  if (argv === undefined) return [];
  const ended = await bench.run(argv);
  return ended.status === 0 ? [] : [`${argv[0]} ended with ${lastOutput(ended)}`];
}

async function compared(bench: Bench, expected: ClusterState, result: SweepResult): Promise<string[]> {
  result.compared++;
  return await bench.unlike(expected);
}

/** Notes how many calls a way has, and gives the names of those that write. */
function count(result: SweepResult, way: Interruption, calls: readonly Call[]): string[] {
  const writes = [...new Set(calls.filter(({ isWrite }) => isWrite).map(({ name }) => name))];
  result.calls[way] = calls.length;
  result.writes[way] = writes.length;
  return writes;
}

const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1)} s`;
