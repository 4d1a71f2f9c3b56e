import { describe, expect, it } from "vitest";
import { sleep, systemClock } from "./clock.ts";
import { fakeClock } from "./fake-clock.ts";

describe("a fake clock", () => {
  it("fires timers in the order of their time, each seeing its own moment", async () => {
    const clock = fakeClock(1_000);
    const fired: string[] = [];
    clock.setTimeout(() => fired.push(`late at ${clock.now()}`), 200);
    clock.setTimeout(() => fired.push(`early at ${clock.now()}`), 100);
    await clock.advance(250);
    expect(fired).toEqual(["early at 1100", "late at 1200"]);
    expect(clock.now()).toBe(1_250);
  });

  it("fires timers that other timers set, if they fall within the same advance", async () => {
    const clock = fakeClock();
    const fired: number[] = [];
    const tick = () => {
      fired.push(clock.now());
      clock.setTimeout(tick, 10);
    };
    clock.setTimeout(tick, 10);
    await clock.advance(35);
    expect(fired).toEqual([10, 20, 30]);
  });

  it("forgets a cancelled timer", async () => {
    const clock = fakeClock();
    let fired = false;
    const cancel = clock.setTimeout(() => {
      fired = true;
    }, 10);
    cancel();
    await clock.advance(100);
    expect(fired).toBe(false);
  });
});

describe("sleep", () => {
  it("ends when the time has come", async () => {
    const clock = fakeClock();
    const sleeping = sleep(clock, 1_000).then(() => clock.now());
    await clock.advance(2_000);
    expect(await sleeping).toBe(1_000);
  });

  it("ends at once when the signal aborts, before or during the sleep", async () => {
    const stop = new AbortController();
    const sleeping = sleep(systemClock, 3_600_000, stop.signal);
    stop.abort();
    await sleeping;
    await sleep(systemClock, 3_600_000, stop.signal);
  });
});
