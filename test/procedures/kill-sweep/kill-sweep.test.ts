import { describe, expect, it } from "vitest";
import { SWEPT } from "./procedures.ts";
import { sweep } from "./sweep.ts";

/**
 * `kill -9` at every call vendorctl makes, of every procedure. `npm run sweep` takes every call; here it is a few of each, spread
 * over all of them, in both moments and both directions.
 */
const FULL = process.env["SWEEP"] === "full";
const ONLY = process.env["SWEEP_ONLY"];
/** Of each way and moment. */
const SAMPLE = Number(process.env["SWEEP_SAMPLE"] ?? 1);

describe("vendorctl killed in the middle", () => {
  const rows = SWEPT.filter(({ name }) => ONLY === undefined || name.includes(ONLY));
  it.each(rows)(
    "of $name: resume ends where it would have ended, rollback where it began",
    async (procedure) => {
      const { calls, killed, recovered, problems } = await sweep(procedure, FULL ? "every" : SAMPLE);
      const of = `${calls.forward} calls there, ${calls.back} back`;
      console.log(`${procedure.name}: ${killed} killed, ${recovered} recovered (${of})`);
      expect(problems).toEqual([]);
      expect(recovered).toBe(killed);
    },
    FULL ? 4 * 3_600_000 : 600_000,
  );
});
