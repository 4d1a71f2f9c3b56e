import { describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { fakeClock } from "../kit/fake-clock.ts";
import { keyedQueue } from "../kit/keyed-queue.ts";
import { type Log, silentLog } from "../kit/log.ts";
import { createClient } from "./client.ts";
import { type Reconcile, runController, watching } from "./controller.ts";
import { createInformer } from "./informer.ts";
import { CONFIG_MAPS } from "./kinds.ts";
import { keyOf } from "./object-cache.ts";
import { scriptedServer } from "./testing/scripted-server.ts";

const THINGS = "/api/v1/configmaps";

interface Options {
  workers?: number;
  log?: Log;
  keys?: (object: KubeObject) => string[];
  hang?: boolean;
}

function world(reconcile: Reconcile, options: Options = {}) {
  const server = scriptedServer();
  server.hang(options.hang ?? false);
  const clock = fakeClock();
  const queue = keyedQueue({ clock, backoff: { initialMs: 100, maxMs: 10_000, jitter: 0 } });
  const client = createClient(server.transport(), { userAgent: "test", clock });
  const informer = createInformer<KubeObject>(client, CONFIG_MAPS, { clock });
  const { keys = (object) => [keyOf(object)], workers = 1, log = silentLog } = options;
  const watches = [watching(informer, keys)];
  const controller = runController({ name: "test", watches, reconcile, workers, queue, log });
  const stop = async () => {
    await controller.stop();
    await informer.stop();
  };
  return { server, clock, controller, stop };
}

describe("a controller", () => {
  it("waits until it knows the world, then looks at each key once, however much happened to it", async () => {
    const seen: string[] = [];
    const { server, clock, stop } = world(async (key) => void seen.push(key), { hang: true });
    server.set(THINGS, "a");
    server.set(THINGS, "a");
    server.set(THINGS, "b");
    await clock.advance(10);
    expect(seen).toEqual([]);
    server.hang(false);
    await clock.advance(10);
    expect(seen).toEqual(["a", "b"]);
    server.remove(THINGS, "a");
    await clock.advance(10);
    expect(seen).toEqual(["a", "b", "a"]);
    await stop();
  });

  it("looks at the key an object has left as well as at the one it came to", async () => {
    const seen: string[] = [];
    const keys = (object: KubeObject) => [(object["owner"] as string) ?? "none"];
    const { server, clock, stop } = world(async (key) => void seen.push(key), { keys });
    server.set(THINGS, "pod", { owner: "first" });
    await clock.advance(10);
    server.set(THINGS, "pod", { owner: "second" });
    await clock.advance(10);
    expect(seen).toEqual(["first", "second", "first"]);
    await stop();
  });

  it("retries a failure later and later, says so in the log, and starts over when it goes well", async () => {
    const at: number[] = [];
    const lines: unknown[] = [];
    const log: Log = { ...silentLog, warn: (fields) => lines.push(fields["failures"]), child: () => log };
    let failing = true;
    const { clock, controller, stop } = world(
      async () => {
        at.push(clock.now());
        if (failing) throw new Error("not yet");
      },
      { log },
    );
    controller.enqueue("a");
    await clock.advance(750);
    expect(at).toEqual([0, 100, 300, 700]);
    failing = false;
    await clock.advance(1_000);
    failing = true;
    controller.enqueue("a");
    await clock.advance(150);
    expect(at.slice(4)).toEqual([1_500, 1_750, 1_850]);
    expect(lines).toEqual([1, 2, 3, 4, 1, 2]);
    await stop();
  });

  it("looks again when the reconcile asked for it", async () => {
    const at: number[] = [];
    const { clock, controller, stop } = world(async () => {
      at.push(clock.now());
      return { requeueAfterMs: 5_000 };
    });
    controller.enqueue("a");
    await clock.advance(11_000);
    expect(at).toEqual([0, 5_000, 10_000]);
    await stop();
  });

  it("works on several keys at once but never twice on one", async () => {
    const open = new Map<string, () => void>();
    let most = 0;
    const { clock, controller, stop } = world(
      (key) =>
        new Promise((resolve) => {
          expect(open.has(key)).toBe(false);
          open.set(key, () => {
            open.delete(key);
            resolve();
          });
          most = Math.max(most, open.size);
        }),
      { workers: 2 },
    );
    for (const key of ["a", "b", "c"]) controller.enqueue(key);
    await clock.advance(10);
    controller.enqueue("a");
    await clock.advance(10);
    expect([...open.keys()]).toEqual(["a", "b"]);
    while (open.size > 0) {
      [...open.values()][0]?.();
      await clock.advance(10);
    }
    expect(most).toBe(2);
    await stop();
  });

  it("stops only when the work under way has ended, having told it to", async () => {
    let finished = false;
    const { clock, controller, stop } = world(async (_key, signal) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      finished = true;
    });
    controller.enqueue("a");
    await clock.advance(10);
    await stop();
    expect(finished).toBe(true);
  });
});
