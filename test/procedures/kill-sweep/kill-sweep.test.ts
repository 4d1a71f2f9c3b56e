import { describe, expect, it } from "vitest";
import { SWEPT } from "./procedures.ts";
import { type Choice, type SweepResult, sweep } from "./sweep.ts";

/**
 * `kill -9` of vendorctl at the calls of every procedure. Here it is a few of each, there and back; `npm run sweep` takes every write.
 */
const MODE = process.env["SWEEP"];
const ONLY = process.env["SWEEP_ONLY"];
const CHOICE: Choice = MODE === "each" || MODE === "relentless" ? MODE : Number(process.env["SWEEP_SAMPLE"] ?? 2);

describe("vendorctl killed in the middle", () => {
  const exact = SWEPT.filter(({ name }) => name === ONLY);
  const rows = exact.length > 0 ? exact : SWEPT.filter(({ name }) => ONLY === undefined || name.includes(ONLY));
  it.each(rows)(
    "of $name: resume ends where it would have ended, rollback where it began",
    async (procedure) => {
      const result = await sweep(
        procedure,
        CHOICE,
        MODE ? (line) => console.log(`${procedure.name}: ${line}`) : () => {},
      );
      console.log(`${procedure.name}: ${inWords(result)}`);
      expect(result.problems).toEqual([]);
      const { there, back } = result.killed;
      expect(Math.min(there, back)).toBeGreaterThan(0);
      expect(result.recovered).toBe(there + back);
    },
    typeof CHOICE === "number" ? 600_000 : 4 * 3_600_000,
  );
});

function inWords({ calls, writes, killed, recovered, compared }: SweepResult): string {
  const kills = `killed ${killed.there} times there and ${killed.back} back, recovered ${recovered}`;
  const of = (["there", "back"] as const)
    .map((way) => `${writes[way]} writes of ${calls[way]} calls ${way}`)
    .join(", ");
  const reads = "the reads between two writes are the same cut";
  return `${kills}; all objects compared ${compared} times (${of}; ${reads})`;
}
