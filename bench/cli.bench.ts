import { spawnSync } from "node:child_process";
import { median, type Row } from "./run.ts";

const ROUNDS = 25;

const NODE = ["-e", "0"];
const COMMANDS = {
  "vendorctl version --client": ["bin/vendorctl", "version", "--client"],
  "vendorctl --help": ["bin/vendorctl", "--help"],
  "node dist/main.js version --client": ["dist/main.js", "version", "--client"],
};

/** How long a person waits for the simplest answers, as a multiple of what Node itself takes to start. */
export async function run(): Promise<Row[]> {
  const times = new Map<string, number[]>();
  // One run of each in turn, so that a busy moment of the machine slows all of them alike. The first round only warms up.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, args] of Object.entries({ node: NODE, ...COMMANDS })) {
      const took = timeOf(args);
      if (round > 0) times.set(name, [...(times.get(name) ?? []), took]);
    }
  }
  const beside = { name: "node -e 0", value: median(times.get("node")!) };
  return Object.keys(COMMANDS).map((name) => ({ name, value: median(times.get(name)!), unit: "ms", beside }));
}

function timeOf(args: string[]): number {
  const started = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`node ${args.join(" ")} ended with ${status}: ${stderr}`);
  return performance.now() - started;
}
