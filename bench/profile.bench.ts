import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release } from "node:os";
import { join } from "node:path";
import { flamesOf, rowsOf } from "./profile/figures.ts";
import { flameGraph } from "./profile/flame-graph.ts";
import { Measurement, type ProfilePlan } from "./profile/measure.ts";
import { page } from "./profile/page.ts";
import { openProfileLab } from "./profile/profile-lab.ts";
import { OWN_OBJECTS, objectsOf, ProgramSet } from "./profile/program-set.ts";
import type { Row } from "./run.ts";

const FULL: ProfilePlan = { rounds: 15, connections: 60, runs: 12, repeats: 200 };
const QUICK: ProfilePlan = { rounds: 5, connections: 20, runs: 8, repeats: 200 };
const AGAINST = "--against=";
const RESULTS = "bench/results";
const METHOD = [
  "Every program is run by BPF_PROG_TEST_RUN with the frames of whole connections, at every hook they meet, over the maps of a node with two pods, a Service, an uplink and an overlay. Queues, sockets and the stack are not in these numbers.",
  "Once: each packet of each connection one time, after a system call and other work, as packets come that are rare; less the time of an empty program. The median of the rounds, and the medians of the quietest and the noisiest round.",
  "Repeated: a packet of a known connection 200 times in place, as packets come that are many. The quietest tenth of all runs, and the median. A translated packet is another one after its first run, so it is not repeated.",
  "The stages of a SYN are differences: it is stopped before the next program by one that does nothing in its place.",
];

/** What each packet costs in each program it meets; with `--against=FILE` next to the programs of another build that has the same maps. */
export async function run(): Promise<Row[]> {
  if (process.getuid?.() !== 0) throw new Error("it makes network namespaces and loads programs: run it as root");
  const plan = process.argv.includes("--quick") ? QUICK : FULL;
  const other = process.argv.find((word) => word.startsWith(AGAINST))?.slice(AGAINST.length);
  const lab = await openProfileLab();
  const loaded: ProgramSet[] = [];
  try {
    for (const bytes of [OWN_OBJECTS, ...(other ? [objectsOf(other)] : [])]) {
      loaded.push(await ProgramSet.load(lab, bytes));
    }
    const measurement = new Measurement(lab, loaded);
    for (let round = 0; round < plan.rounds; round++) measurement.round(plan);
    const [own, others] = measurement.profiles;
    measurement.close();
    write("profile.svg", flameGraph(flamesOf(own!)));
    write("profile.html", page(own!, machine(), METHOD));
    return rowsOf(own!, others, loaded[0]!);
  } finally {
    for (const set of loaded) set.close();
    await lab.close();
  }
}

function machine(): string[] {
  return [
    `Linux ${release().replace(/-.*/, "")} on ${process.arch}, ${cpus().length} processors, load ${loadavg()[0]!.toFixed(0)}`,
    `Node ${process.version}`,
  ];
}

function write(name: string, text: string): void {
  mkdirSync(join(process.cwd(), RESULTS), { recursive: true });
  writeFileSync(join(process.cwd(), RESULTS, name), text);
}
