import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "vitest";
import { StatusError } from "../../src/api/status.ts";
import { CodedError } from "../../src/kit/errors.ts";
import { Random } from "../calc/random.ts";

/** `FUZZ_INPUTS` are shared by all targets by weight: 1000000 is the long run. `FUZZ_SEED` begins elsewhere. */
const INPUTS = Number(process.env["FUZZ_INPUTS"] ?? 10_000);
const SEED = Number(process.env["FUZZ_SEED"] ?? 1);

/** The sum of all weights, by target. A heavy parser gets fewer inputs. */
const WEIGHTS = {
  "netlink message": 10,
  "nf_conntrack message": 10,
  kubeconfig: 3,
  "log of the store": 6,
  "journal of runs": 6,
  "plan file": 6,
  "CNI standard input": 10,
  "request body": 10,
  "label selector": 10,
  "policy selector": 10,
  "BPF object": 1,
  BTF: 4,
  "health port": 5,
  "CNI socket": 4,
  "gRPC sockets": 4,
  "probe server": 3,
  "embedded API server": 4,
  "aggregated API": 1,
} as const;
export type Target = keyof typeof WEIGHTS;

function inputsFor(target: Target): number {
  const all = Object.values(WEIGHTS).reduce((sum, weight) => sum + weight, 0);
  return Math.max(50, Math.ceil((INPUTS * WEIGHTS[target]) / all));
}

/** Enough for the long run on two cores. */
export const FUZZ_TIMEOUT_MS = 60_000 + INPUTS * 4;

/** Bytes and words that parsers stumble over. */
const INTERESTING = [
  0, 1, 2, 3, 4, 7, 8, 15, 16, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0xffffffff,
];
const WORDS = [
  "__proto__",
  "constructor",
  "\0",
  "\u001b[31m",
  "{{x}}",
  "%00",
  "../",
  "*",
  "&a *a",
  "-1",
  "1e999",
  "NaN",
  "null",
  "true",
  "[]",
  "{}",
];

/** Changes a sample in one to eight ways, as a hostile or a broken peer might. */
function mutate(random: Random, sample: Buffer): Buffer {
  let bytes: Buffer = Buffer.from(sample);
  for (let times = 1 + random.below(8); times > 0; times--) bytes = mutateOnce(random, bytes);
  return bytes;
}

function mutateOnce(random: Random, bytes: Buffer): Buffer {
  const at = random.below(bytes.length + 1);
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
  switch (random.below(9)) {
    case 0:
      return before;
    case 1:
      return Buffer.concat([before, after.subarray(1 + random.below(16))]);
    case 2:
      return Buffer.concat([before, Buffer.from(random.some(1, 16, () => random.below(256))), after]);
    case 3:
      return Buffer.concat([before, Buffer.from(random.of(WORDS)), after]);
    case 4: {
      const from = random.below(bytes.length + 1);
      return Buffer.concat([before, bytes.subarray(from, from + random.below(64)), after]);
    }
    case 5:
      return Buffer.concat([
        before,
        Buffer.from(String.fromCharCode(random.below(128)).repeat(1 + random.below(300))),
        after,
      ]);
    case 6:
      if (at + 4 <= bytes.length) bytes.writeUInt32LE(random.of(INTERESTING), at);
      return bytes;
    case 7:
      if (at + 2 <= bytes.length) bytes.writeUInt16LE(random.of(INTERESTING) & 0xffff, at);
      return bytes;
    default:
      if (at < bytes.length) bytes[at] = random.below(256);
      return bytes;
  }
}

/** An answer a caller can act on: an error with a code, or the Status of an API. */
function isTyped(error: unknown): boolean {
  return error instanceof CodedError || error instanceof StatusError;
}

/** No single input may cost more of the processor: one request must not hold up the others. By the clock a busy machine would fail. */
const LONGEST_MS = 2_000;
/** By the clock: waiting costs nothing, and must end. As long as a machine with ten times its load takes for the other limit. */
const LONGEST_WAIT_MS = 20_000;

/** What a run came to, summed over the targets of a file for the last line. */
interface Figures {
  inputs: number;
  refused: number;
  rejections: number;
  uncaught: number;
}

const TOTAL: Figures = { inputs: 0, refused: 0, rejections: 0, uncaught: 0 };

/**
 * Gives a parser samples and what mutation makes of them. It must answer, or refuse with a typed error; anything else fails the test with
 * the seed and the input. Memory must not grow from the second fifth of the run on.
 */
export async function fuzz(
  target: Target,
  samples: readonly (string | Buffer)[],
  run: (input: Buffer, random: Random) => unknown,
): Promise<void> {
  const count = inputsFor(target);
  const random = new Random(SEED);
  const sources = samples.map((sample) => (typeof sample === "string" ? Buffer.from(sample) : sample));
  const figures: Figures = { inputs: 0, refused: 0, rejections: 0, uncaught: 0 };
  const unwatch = watchProcess(figures);
  const memory = { before: memoryNow(), settled: memoryNow() };
  try {
    for (let index = 0; index < count; index++) {
      const input = index < sources.length ? (sources[index] as Buffer) : mutate(random, random.of(sources));
      const [began, beganAt] = [process.cpuUsage(), performance.now()];
      try {
        await run(input, random);
      } catch (error) {
        if (!isTyped(error))
          throw new Error(`${target}, input ${index} of seed ${SEED}: ${shown(input)}`, { cause: error });
        figures.refused++;
      }
      figures.inputs++;
      const { user, system } = process.cpuUsage(began);
      const [cost, took] = [(user + system) / 1000, performance.now() - beganAt];
      if (cost > LONGEST_MS || took > LONGEST_WAIT_MS) {
        const times = `cost ${Math.round(cost)} ms and took ${Math.round(took)} ms`;
        throw new Error(`${target}, input ${index} of seed ${SEED} ${times}: ${shown(input)}`);
      }
      if (index === Math.floor(count / 5)) memory.settled = memoryNow();
    }
    const after = memoryNow();
    console.log(`${target}: ${shownFigures(figures)}, RSS ${mib(memory.before.rss)} -> ${mib(after.rss)} MiB`);
    expect(figures).toMatchObject({ rejections: 0, uncaught: 0 });
    expect(after.heap - memory.settled.heap, "bytes of memory that stay").toBeLessThan(48 * 1024 * 1024);
  } finally {
    unwatch();
    for (const key of Object.keys(TOTAL) as (keyof Figures)[]) TOTAL[key] += figures[key];
  }
}

/** The last line of a file: what all its targets came to. */
export function printTotal(): void {
  console.log(`all of this file: ${shownFigures(TOTAL)}, RSS at the end ${mib(memoryNow().rss)} MiB`);
  // Files share a process.
  Object.assign(TOTAL, { inputs: 0, refused: 0, rejections: 0, uncaught: 0 });
}

/** Counts what would end a process that carries traffic. The monitor sees an exception before the test runner's own handler takes it. */
function watchProcess(figures: Figures): () => void {
  const onRejection = () => void figures.rejections++;
  const onException = () => void figures.uncaught++;
  process.on("unhandledRejection", onRejection);
  process.on("uncaughtExceptionMonitor", onException);
  return () => {
    process.off("unhandledRejection", onRejection);
    process.off("uncaughtExceptionMonitor", onException);
  };
}

function shownFigures({ inputs, refused, rejections, uncaught }: Figures): string {
  const ends = `process ends ${uncaught}, unhandled rejections ${rejections}`;
  return `${inputs} inputs with seed ${SEED}, ${refused} refused with a typed error, ${ends}`;
}

function shown(input: Buffer): string {
  return input.length > 2_000 ? `${input.length} bytes` : `base64 ${input.toString("base64")}`;
}

let collect: (() => void) | undefined;

function memoryNow(): { heap: number; rss: number } {
  if (!collect) {
    setFlagsFromString("--expose-gc");
    collect = runInNewContext("gc") as () => void;
  }
  collect();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heap: heapUsed + external, rss };
}

function mib(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
