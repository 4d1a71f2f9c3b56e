import { describe, expect, it } from "vitest";
import { fakeClock } from "./fake-clock.ts";
import { keyedQueue } from "./keyed-queue.ts";

const backoff = { initialMs: 100, maxMs: 1_000, jitter: 0 };

describe("a keyed queue", () => {
  it("gives keys out in the order they came, each once however often it was added", async () => {
    const queue = keyedQueue();
    for (const key of ["b", "a", "b", "c", "a"]) queue.add(key);
    expect([await queue.take(), await queue.take(), await queue.take()]).toEqual(["b", "a", "c"]);
    expect(queue.length).toBe(0);
  });

  it("wakes a waiting worker", async () => {
    const queue = keyedQueue();
    const waiting = queue.take();
    queue.add("a");
    expect(await waiting).toBe("a");
  });

  it("never gives a key to two workers, and gives it once more if it was added meanwhile", async () => {
    const queue = keyedQueue();
    queue.add("a");
    await queue.take();
    queue.add("a");
    queue.add("a");
    expect(queue.length).toBe(0);
    queue.done("a");
    expect(await queue.take()).toBe("a");
    queue.done("a");
    expect(queue.length).toBe(0);
  });

  it("of two delayed adds keeps the earlier, and an add now overtakes both", async () => {
    const clock = fakeClock();
    const queue = keyedQueue({ clock });
    queue.addAfter("a", 500);
    queue.addAfter("a", 100);
    queue.addAfter("a", 900);
    await clock.advance(99);
    expect(queue.length).toBe(0);
    await clock.advance(1);
    expect(queue.length).toBe(1);
    queue.addAfter("b", 500);
    queue.add("b");
    queue.done((await queue.take()) as string);
    queue.done((await queue.take()) as string);
    await clock.advance(10_000);
    expect(queue.length).toBe(0);
  });

  it("waits longer with each retry of one key, and starts over when the key is forgotten", async () => {
    const clock = fakeClock();
    const queue = keyedQueue({ clock, backoff });
    const delays: number[] = [];
    const retryAndMeasure = async () => {
      const from = clock.now();
      queue.retry("a");
      while (queue.length === 0) await clock.advance(50);
      delays.push(clock.now() - from);
      queue.done((await queue.take()) as string);
    };
    for (let i = 0; i < 5; i++) await retryAndMeasure();
    expect(queue.failures("a")).toBe(5);
    queue.forget("a");
    await retryAndMeasure();
    expect(delays).toEqual([100, 200, 400, 800, 1_000, 100]);
  });

  it("on stop sends idle workers home and waits for the keys in hand", async () => {
    const queue = keyedQueue();
    queue.add("in hand");
    await queue.take();
    const idle = queue.take();
    let stopped = false;
    const stopping = queue.stop().then(() => {
      stopped = true;
    });
    expect(await idle).toBeUndefined();
    queue.add("too late");
    expect(stopped).toBe(false);
    queue.done("in hand");
    await stopping;
    expect(await queue.take()).toBeUndefined();
  });
});
