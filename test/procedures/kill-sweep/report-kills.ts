import { describe, expect, it } from "vitest";
import type { SweptProcedure } from "./procedures.ts";
import { type Choice, type SweepResult, sweep } from "./sweep.ts";

/**
 * `kill -9` of vendorctl at the calls of procedures. A test run takes a few calls of some procedures, forward and in rollback; the long run
 * takes every write of all of them.
 */
const MODE = process.env["SWEEP"];
const CHOICE: Choice = MODE === "each" || MODE === "relentless" ? MODE : Number(process.env["SWEEP_SAMPLE"] ?? 2);
const PATIENCE_MS = typeof CHOICE === "number" ? 600_000 : 6 * 3_600_000;

export function reportKills(procedures: readonly SweptProcedure[]): void {
  describe("vendorctl killed in the middle", () => {
    for (const procedure of procedures) {
      const title = `of ${procedure.name}: resume ends where it would have ended, rollback where it began`;
      it(title, { timeout: PATIENCE_MS }, async ({ skip }) => {
        if (!MODE && !procedure.always) skip("a long run: npm run test:long -- sweep");
        const tell = (line: string) => console.log(`${procedure.name}: ${line}`);
        const result = await sweep(procedure, CHOICE, MODE ? tell : () => {});
        tell(inWords(result));
        const { there, back } = result.killed;
        expect(result.problems).toEqual([]);
        expect(Math.min(there, back)).toBeGreaterThan(0);
        expect(result.recovered).toBe(there + back);
      });
    }
  });
}

function inWords({ calls, writes, killed, recovered, compared }: SweepResult): string {
  const kills = `killed ${killed.there} times there and ${killed.back} back, recovered ${recovered}`;
  const ways = (["there", "back"] as const).filter((way) => calls[way] > 0);
  const of = ways.map((way) => `${writes[way]} writes of ${calls[way]} calls ${way}`).join(", ");
  return `${kills}; all objects compared ${compared} times (${of}; the reads between two writes are the same cut)`;
}
