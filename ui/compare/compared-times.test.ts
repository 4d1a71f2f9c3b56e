import { expect, it } from "vitest";
import { timeOfDay, timesAround } from "./compared-times.ts";

const MINUTE = 60_000;
const known = { from: 0, until: 60 * MINUTE };

it("takes as long before the mark as after it", () => {
  expect(timesAround(30 * MINUTE, 15 * MINUTE, known)).toEqual({
    ...{ since: 15 * MINUTE, before: 30 * MINUTE, after: 30 * MINUTE, until: 45 * MINUTE },
  });
});

it("is as short as what is known on the shorter side", () => {
  expect(timesAround(57 * MINUTE, 15 * MINUTE, known)).toMatchObject({ since: 54 * MINUTE, until: 60 * MINUTE });
  expect(timesAround(2 * MINUTE, 15 * MINUTE, known)).toMatchObject({ since: 0, until: 4 * MINUTE });
  for (const mark of [0, -MINUTE, 60 * MINUTE, 90 * MINUTE])
    expect(timesAround(mark, 15 * MINUTE, known)).toBeUndefined();
});

it("leaves out the step of counting that the mark is in: it has both", () => {
  expect(timesAround(30 * MINUTE + 1, 5 * MINUTE, known)).toMatchObject({
    ...{ before: 30 * MINUTE, after: 30 * MINUTE + 15_000 },
  });
});

it("reads a time of day as the last one", () => {
  const now = new Date(2026, 0, 31, 10, 30, 0).getTime();
  expect(timeOfDay("10:29:30", now)).toBe(now - 30_000);
  expect(timeOfDay("10:31", now)).toBe(new Date(2026, 0, 30, 10, 31, 0).getTime());
  for (const text of ["", "ten", "24:00", "10:60", "10:00:61"]) expect(timeOfDay(text, now)).toBeUndefined();
});
