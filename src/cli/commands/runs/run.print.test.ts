import { expect, it } from "vitest";
import type { StepEvent } from "../../../procedures/run/step-event.ts";
import type { Session } from "../../session.ts";
import { printReport, showRun } from "./run.print.ts";

const about = { number: 1, id: "one" };
const said = (text: string, rest: object) => ({ event: "say", ...about, text, ...rest }) as StepEvent;

/** Words that once decided what a line was. */
const EVENTS: StepEvent[] = [
  { event: "step", ...about, of: 1, title: "Wait", where: "here", state: "running" },
  said("waiting for nobody", { kind: "note" }),
  said("measured: nothing", { kind: "note" }),
  said("the pods are late", { kind: "waiting", for: "pods", since: "2026-01-01T00:00:00Z" }),
  said("0 lost", { kind: "measured" }),
  { event: "end", run: "r", outcome: "done", done: 1, skipped: 0, undone: 0, pending: 0, ms: 1 },
];

function session(output: "table" | "json") {
  const written = { out: "", err: "" };
  const flags = { output, quiet: false, color: "never" };
  const made = {
    flags,
    env: {},
    config: { interactive: false, columns: 80 },
    out(text: string) {
      written.out += text;
    },
    err(text: string) {
      written.err += text;
    },
  };
  return { written, session: made as unknown as Session };
}

async function* eventsOf() {
  yield* EVENTS;
}

it("what a line is comes from the event's kind, whatever its words", async () => {
  const { session: one, written } = session("table");
  const report = await showRun(one, eventsOf());
  expect(report.measured).toEqual(["0 lost"]);
  const lines = written.err.split("\n");
  expect(lines).toContain("      waiting for nobody");
  expect(lines).toContain("      measured: nothing");
  expect(lines.some((line) => /^ +the pods are late/.test(line))).toBe(false);
  await printReport(one, report, []);
  expect(written.out).toContain("measured: 0 lost\n");
});

it("programs get the kind beside the words", async () => {
  const { session: one, written } = session("json");
  await showRun(one, eventsOf());
  const read = written.out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(read.filter(({ event }) => event === "say").map(({ kind }) => kind)).toEqual([
    "note",
    "note",
    "waiting",
    "measured",
  ]);
});
