import { expect, it } from "vitest";
import { inMinutes, secondsLeft } from "./estimate.mjs";

const nothing = { waiting: [], running: [], doneRecorded: 0, spent: 0, workers: 2 };

it("work is shared by the workers", () => {
  expect(secondsLeft({ ...nothing, waiting: [30, 30, 20] })).toBe(40);
});

it("no run ends before its longest file", () => {
  expect(secondsLeft({ ...nothing, waiting: [100, 10] })).toBe(100);
  expect(secondsLeft({ ...nothing, running: [{ recorded: 100, elapsed: 30 }] })).toBe(70);
});

it("a slow machine takes longer for the rest too", () => {
  expect(secondsLeft({ ...nothing, waiting: [30, 30], doneRecorded: 40, spent: 80 })).toBe(60);
});

it("a file that takes longer than recorded is not counted below zero", () => {
  expect(secondsLeft({ ...nothing, running: [{ recorded: 10, elapsed: 30 }] })).toBe(0);
});

it.each([
  [12.4, "12 s"],
  [59.8, "1 min 0 s"],
  [90, "1 min 30 s"],
  [899, "15 min"],
])("%s seconds: %s", (seconds, words) => {
  expect(inMinutes(seconds)).toBe(words);
});
