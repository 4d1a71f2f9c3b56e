import { afterEach, beforeEach, expect, it } from "vitest";
import { SECRETS } from "../../cluster/kinds.ts";
import { type BareCluster, bareCluster, memoryCopy, planOf } from "../testing/bare-cluster.ts";
import { newHolder } from "./holder.ts";
import { openJournal } from "./journal.ts";
import { pageRunsReader } from "./page-runs.ts";
import { newRecord, type RunRecord } from "./run-record.ts";

const TOOL = "v3.31.3";
const START = Date.parse("2026-01-01T10:00:00Z");

let cluster: BareCluster;
beforeEach(async () => {
  cluster = await bareCluster();
});
afterEach(() => cluster.close());

const read = () => pageRunsReader({ client: cluster.client, tool: TOOL })(new AbortController().signal);

/** A run that began so many minutes after the first, as a process writes it down. */
async function write(minute: number, change: Partial<RunRecord>, identity = newHolder()): Promise<RunRecord> {
  const options = { client: cluster.client, namespace: "kube-system", tool: TOOL, local: memoryCopy() };
  const journal = openJournal({ ...options, identity });
  const plan = planOf();
  const record = { ...newRecord(plan, { tool: TOOL, now: START + minute * 60_000 }), ...change };
  await journal.begin(record, plan);
  return record;
}

it("has the newest first, with the titles of their plans", async () => {
  await write(0, { outcome: "done" });
  const { id } = await write(1, { outcome: "running" });
  const { runs } = await read();
  expect(runs.map(({ outcome }) => outcome)).toEqual(["running", "done"]);
  const { steps } = planOf();
  expect(runs[0]).toMatchObject({ id, title: "Do something", command: "vendorctl install", isCutOff: false, next: [] });
  expect(runs[0]?.steps).toEqual(steps.map((step) => ({ id: step.id, title: step.title, state: "pending" })));
});

it("says what a person types next, and names the run where the command would mean another", async () => {
  const touched = planOf().steps.map(({ id }) => ({ id, state: "confirmed" as const }));
  const older = await write(0, { outcome: "stopped", steps: touched, why: { code: "FAILED", message: "it did" } });
  expect((await read()).runs[0]).toMatchObject({
    why: { code: "FAILED", message: "it did" },
    next: ["vendorctl resume", "vendorctl rollback"],
  });
  await write(1, { outcome: "stopped", heading: "back", steps: touched });
  const { runs } = await read();
  // What came later stands on what came before, so the older one is not rolled back.
  expect(runs.map(({ next }) => next)).toEqual([["vendorctl resume"], [`vendorctl resume --run ${older.id}`]]);
});

it("a run whose process has ended can be resumed, whatever its record says", async () => {
  const dead = newHolder().replace(/\/\d+\.\d+\./, "/1.0.");
  await write(0, { outcome: "running" }, dead);
  const { runs } = await read();
  expect(runs[0]).toMatchObject({ outcome: "running", isCutOff: process.platform === "linux" });
  expect(runs[0]?.next).toContain("vendorctl resume");
});

it("gives the figures that were measured last, and how long was measured", async () => {
  const row = { way: "pod-remote", protocol: "tcp", reached: true, replaced: 0, sent: 0, unanswered: 0 } as const;
  const at = (seconds: number) => new Date(START + seconds * 1_000).toISOString();
  const [first, second, ...rest] = planOf().steps.map(({ id }) => ({ id, state: "confirmed" as const }));
  await write(0, {
    steps: [
      { ...first!, at: at(10), figures: [{ ...row, opened: 3, lost: 0, silenceMs: 5 }] },
      {
        ...{ ...second!, at: at(202) },
        figures: [
          { ...row, opened: 20, lost: 1, silenceMs: 41 },
          { ...row, way: "service-remote", opened: 4, lost: 0, silenceMs: 40 },
        ],
      },
      ...rest,
    ],
  });
  const { traffic } = (await read()).runs[0]!;
  expect(traffic?.rows.map(({ way }) => way)).toEqual(["pod-remote", "service-remote"]);
  expect(traffic).toMatchObject({ sum: { opened: 24, lost: 1, sent: 0, unanswered: 0, silenceMs: 41 }, ms: 192_000 });
});

it("shows a run whose record or plan was damaged for what it is", async () => {
  const { id } = await write(0, { outcome: "done" });
  await cluster.client.delete(SECRETS, { namespace: "kube-system", name: `vendorctl-run-${id}-plan-0` });
  expect((await read()).runs[0]?.steps.map((step) => step.title)).toEqual(planOf().steps.map((step) => step.id));
  const record = { namespace: "kube-system", name: `vendorctl-run-${id}` };
  await cluster.client.patch(SECRETS, record, { type: "merge", patch: { data: { record: "bm90aGluZw==" } } });
  expect((await read()).runs).toMatchObject([
    { id, title: "", outcome: "unreadable", why: { code: "JOURNAL_DAMAGED" }, steps: [], next: ["vendorctl abort"] },
  ]);
});
