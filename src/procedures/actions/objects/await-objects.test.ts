import { afterEach, beforeEach, expect, it } from "vitest";
import { vendorNames } from "../../../api/names.ts";
import { CONFIG_MAPS } from "../../../cluster/kinds.ts";
import { fakeClock } from "../../../kit/fake-clock.ts";
import { NO_REPORTS } from "../../action.ts";
import { type BareCluster, bareCluster } from "../../testing/bare-cluster.ts";
import { awaitObjects } from "./await-objects.ts";

const MINUTE = 60_000;

let cluster: BareCluster;
beforeEach(async () => {
  cluster = await bareCluster();
});
afterEach(() => cluster.close());

/** A wait for ConfigMaps to be as many as nobody makes. */
function waitForMaps(stallMs: number | undefined) {
  const clock = fakeClock();
  const timers = new Set<object>();
  const setTimeout = (fn: () => void, ms: number) => {
    const timer = {};
    timers.add(timer);
    const cancel = clock.setTimeout(fn, ms);
    return () => {
      timers.delete(timer);
      cancel();
    };
  };
  const waits: string[] = [];
  const stop = new AbortController();
  const work = {
    ...{ ...cluster.engine(), ...NO_REPORTS, names: vendorNames, signal: stop.signal },
    clock: { ...clock, setTimeout },
    ...(stallMs === undefined ? {} : { stallMs }),
    waitingFor: (what: string) => void waits.push(what),
  };
  const done = awaitObjects(work, [{ kind: CONFIG_MAPS, namespace: "default" }], ([maps = []]) => ({
    waitingFor: `more than ${maps.length} ConfigMaps`,
  })).then(
    () => "done",
    (error: unknown) => error,
  );
  return { clock, timers, waits, done, stop: () => stop.abort(new Error("stopped by the test")) };
}

const create = (name: string) =>
  cluster.client.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default" } });

it("a wait ends when nothing has changed for ten minutes, and says what it waited for", async () => {
  const { clock, waits, done } = waitForMaps(10 * MINUTE);
  await expect.poll(() => waits).toHaveLength(1);
  await clock.advance(9 * MINUTE);
  await create("one");
  await expect.poll(() => waits).toHaveLength(2);
  await clock.advance(9 * MINUTE);
  expect(await Promise.race([done, "waits"])).toBe("waits");
  await clock.advance(1 * MINUTE);
  expect(await done).toMatchObject({
    code: "STEP_STALLED",
    message: `nothing has changed for 10 minutes, still waiting for ${waits[1]}`,
  });
});

it("a wait whose run has a time limit of its own goes on", async () => {
  const { clock, waits, done, stop } = waitForMaps(undefined);
  await expect.poll(() => waits).toHaveLength(1);
  await clock.advance(60 * MINUTE);
  expect(await Promise.race([done, "waits"])).toBe("waits");
  stop();
  expect(await done).toMatchObject({ message: "stopped by the test" });
});

it("a wait that is interrupted leaves no timer, which would keep the process from its end", async () => {
  const { timers, waits, done, stop } = waitForMaps(10 * MINUTE);
  await expect.poll(() => waits).toHaveLength(1);
  expect(timers.size).toBeGreaterThan(0);
  stop();
  expect(await done).toMatchObject({ message: "stopped by the test" });
  expect(timers.size).toBe(0);
});
