import { expect, it } from "vitest";
import type { PageRun, PageStep, PageTraffic } from "../../src/api/protocol/page-runs.ts";
import type { TrafficRow } from "../../src/api/protocol/traffic-report.ts";
import { durationText, outcomeOf, runMs, stepped, stepSigns, trafficSentence } from "./run-text.ts";

const RUN: PageRun = {
  ...{ id: "a", title: "Install", procedure: "install", command: "vendorctl install", outcome: "running" },
  ...{ heading: "forward", isCutOff: false, startedAt: "2026-01-01T10:00:00Z", changedAt: "2026-01-01T10:03:12Z" },
  ...{ steps: [], next: [] },
};

const steps = (...states: PageStep["state"][]) => states.map((state, at) => ({ id: `s${at}`, title: `${at}`, state }));
const words = (run: PageRun) => stepSigns(run).map(({ word }) => word);

it.each<[what: string, Partial<PageRun>, string[]]>([
  ["running", { steps: steps("confirmed", "pending", "pending") }, ["done", "under way", "to do"]],
  ["running, after a step that was not needed", { steps: steps("skipped", "intended") }, ["skipped", "under way"]],
  [
    "going back",
    { heading: "back", steps: steps("confirmed", "intended", "undone") },
    ["done", "being undone", "undone"],
  ],
  ["stopped", { outcome: "stopped", steps: steps("confirmed", "intended", "pending") }, ["done", "begun", "to do"]],
  ["cut off", { isCutOff: true, steps: steps("applied", "pending") }, ["applied", "to do"]],
  ["done", { outcome: "done", steps: steps("confirmed", "skipped") }, ["done", "skipped"]],
])("the steps of a run that is %s", (_what, change, expected) => {
  expect(words({ ...RUN, ...change })).toEqual(expected);
});

it("a run whose process has ended is no longer said to run", () => {
  expect(outcomeOf(RUN).word).toBe("running");
  expect(outcomeOf({ ...RUN, isCutOff: true }).word).toBe("interrupted");
});

it("a run takes until it last changed, and while it runs until now", () => {
  const now = Date.parse(RUN.startedAt) + 500_000;
  expect(durationText(runMs(RUN, now))).toBe("8 min 20 s");
  for (const change of [{ outcome: "done" }, { isCutOff: true }] as const)
    expect(durationText(runMs({ ...RUN, ...change }, now))).toBe("3 min 12 s");
});

it.each([
  [41, "41 ms"],
  [1_840, "1.8 s"],
  [59_970, "1 min 0 s"],
  [3_720_000, "1 h 2 min"],
  [Number.NaN, ""],
])("%d ms are %j", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

const ROW: TrafficRow = {
  ...{ way: "pod-remote", protocol: "tcp", reached: true, opened: 24, lost: 0, replaced: 0, silenceMs: 41 },
  ...{ sent: 0, unanswered: 0 },
};
const CALM: PageTraffic = {
  ...{ rows: [ROW], ms: 192_000 },
  sum: { opened: 24, lost: 0, sent: 900, unanswered: 0, silenceMs: 41 },
};

it("one sentence says what was lost, and claims nothing of a path that was never answered", () => {
  expect(trafficSentence(CALM)).toBe("Nothing was lost in 3 min 12 s; the longest silence was 41 ms.");
  expect(trafficSentence({ ...CALM, sum: { ...CALM.sum, lost: 2, unanswered: 1 } })).toBe(
    "In 3 min 12 s: 2 of 24 connections lost, 1 of 900 datagrams unanswered, the longest silence was 41 ms.",
  );
  expect(trafficSentence({ ...CALM, rows: [ROW, { ...ROW, reached: false }] })).toMatch(/^Some paths were never/);
});

it("keys go from run to run, and stay at the ends", () => {
  const runs = ["a", "b", "c"].map((id) => ({ ...RUN, id }));
  expect(["a", "b", "c", "gone"].map((id) => stepped(runs, id, 1)?.id)).toEqual(["b", "c", "c", "b"]);
  expect(stepped(runs, "a", -1)?.id).toBe("a");
  expect(stepped([], "", 1)).toBeUndefined();
});
