import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Measurement, type ProfilePlan } from "./profile/measure.ts";
import { openProfileLab } from "./profile/profile-lab.ts";
import { type ObjectBytes, OWN_OBJECTS, objectsOf, ProgramSet } from "./profile/program-set.ts";
import { median, type Row } from "./run.ts";

const FULL: ProfilePlan = { rounds: 15, connections: 100, repeats: 200 };
const QUICK: ProfilePlan = { rounds: 5, connections: 40, repeats: 200 };
const OWN = "these";
const OTHER = "others";

/** What each packet costs in each program it meets, by BPF_PROG_TEST_RUN; with `--against=FILE` next to the programs of another build. */
export async function run(): Promise<Row[]> {
  if (process.getuid?.() !== 0) throw new Error("it makes network namespaces and loads programs: run it as root");
  const plan = process.argv.includes("--quick") ? QUICK : FULL;
  const other = process.argv.find((word) => word.startsWith("--against="))?.slice("--against=".length);
  const builds = new Map<string, ObjectBytes>([[OWN, OWN_OBJECTS]]);
  if (other) builds.set(OTHER, objectsOf(other));
  const lab = await openProfileLab();
  try {
    const sets = new Map<string, ProgramSet>();
    for (const [name, bytes] of builds) sets.set(name, await ProgramSet.load(lab, bytes));
    const measurement = new Measurement(lab, sets);
    for (let round = 0; round <= plan.rounds; round++) measurement.round(plan);
    const own = measurement.profiles.get(OWN)!;
    const old = measurement.profiles.get(OTHER);
    measurement.close();
    return own.steps.map((s, i) => ({
      name: `${s.conversation}: ${s.step}`,
      value: median(s.once),
      unit: `ns; ${s.repeated.length ? median(s.repeated) : ""} vs ${old?.steps[i]?.repeated.length ? median(old.steps[i]!.repeated) : ""}`,
      ...(old ? { beside: { name: OTHER, value: median(old.steps[i]!.once) } } : {}),
    })).concat(Object.entries(own.stages).map(([n, v]) => ({ name: n, value: median(v), unit: "ns", ...(old ? { beside: { name: OTHER, value: median(old.stages[n as never]) } } : {}) })));
  } finally {
    await lab.close();
  }
}
