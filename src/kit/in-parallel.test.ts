import { describe, expect, it } from "vitest";
import { inParallel } from "./in-parallel.ts";

describe("inParallel", () => {
  it("does everything, never more than the limit at once", async () => {
    let under = 0;
    let most = 0;
    const done: number[] = [];
    await inParallel([1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
      most = Math.max(most, ++under);
      await Promise.resolve();
      under--;
      done.push(item);
    });
    expect(done.sort()).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(most).toBe(3);
  });

  it("takes nothing more once something failed, and says what", async () => {
    const begun: number[] = [];
    const work = inParallel([1, 2, 3, 4, 5, 6], 2, async (item) => {
      begun.push(item);
      await Promise.resolve();
      if (item === 2) throw new Error("two");
    });
    await expect(work).rejects.toThrow("two");
    expect(begun.length).toBeLessThan(6);
  });

  it("stops when it is told to", async () => {
    const stop = new AbortController();
    stop.abort();
    await expect(inParallel([1], 1, async () => {}, stop.signal)).rejects.toThrow();
  });
});
