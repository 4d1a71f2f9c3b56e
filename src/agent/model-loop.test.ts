import { describe, expect, it } from "vitest";
import type { ModelDelta, WorkloadEndpoint } from "../calc/model.ts";
import type { ObjectOutcome } from "../dataplane/contract.ts";
import { emptyDelta } from "../dataplane/model-delta.ts";
import { fakeClock } from "../kit/fake-clock.ts";
import { silentLog } from "../kit/log.ts";
import { createMetrics } from "../kit/metrics.ts";
import { agentMetrics } from "./agent-metrics.ts";
import { errors } from "./errors.ts";
import { ModelLoop } from "./model-loop.ts";

const POD = { id: "shop/web", addresses: ["10.0.0.1/32"] } as WorkloadEndpoint;

function start() {
  const clock = fakeClock();
  const waiting: ModelDelta[] = [];
  const applied: ModelDelta[] = [];
  const stop = new AbortController();
  let [failing, throwing, sweeps, resyncs] = [false, false, 0, 0];
  let waits: ObjectOutcome[] = [];
  const loop = new ModelLoop({
    calculator: { takeDelta: () => waiting.shift() },
    target: {
      async apply(delta) {
        if (throwing) throw new Error("the kernel is away");
        applied.push(delta);
        const outcome: ObjectOutcome = { kind: "endpoint", id: POD.id };
        const own = failing ? { ...outcome, failed: errors.AGENT_NOT_READY("no interface") } : outcome;
        return { objects: [own, ...waits] };
      },
      async resync() {
        resyncs++;
      },
      async sweep() {
        sweeps++;
        return { removed: [] };
      },
    },
    clock,
    log: silentLog,
    metrics: agentMetrics(createMetrics()),
  });
  const done = loop.run(stop.signal);
  return {
    ...{ clock, loop, applied },
    tell(delta: Partial<ModelDelta>) {
      waiting.push({ ...emptyDelta(true), ...delta });
      loop.poke();
    },
    fail: (now: boolean) => {
      failing = now;
    },
    waitFor: (objects: ObjectOutcome[]) => {
      waits = objects;
    },
    break: (now: boolean) => {
      throwing = now;
    },
    counts: () => ({ sweeps, resyncs }),
    async stop() {
      stop.abort();
      await done;
    },
  };
}

describe("carrying the model out", () => {
  it("is ready, and sweeps, after the first delta in sync and not before", async () => {
    const on = start();
    on.tell({ inSync: false });
    await on.clock.advance(1);
    expect([on.loop.ready, on.counts().sweeps]).toEqual([false, 0]);
    on.tell({});
    await on.clock.advance(1);
    expect([on.loop.ready, on.counts().sweeps]).toEqual([true, 1]);
    await on.stop();
  });

  it("a pod is in effect when the model has it and nothing of it failed", async () => {
    const on = start();
    on.fail(true);
    on.tell({ endpoints: { set: [POD], remove: [] } });
    await on.clock.advance(1);
    const inEffect = on.loop.inEffect(POD.id, ({ endpoints }) => endpoints.has(POD.id), 10_000);
    let settled = false;
    void inEffect.then(() => {
      settled = true;
    });
    await on.clock.advance(1_000);
    expect([settled, on.loop.problems().length]).toEqual([false, 1]);
    on.fail(false);
    await on.clock.advance(2_000);
    await inEffect;
    expect(on.loop.problems()).toEqual([]);
    await on.stop();
  });

  it("one that is not in effect in time is told why", async () => {
    const on = start();
    on.fail(true);
    on.tell({ endpoints: { set: [POD], remove: [] } });
    const late = on.loop.inEffect(POD.id, ({ endpoints }) => endpoints.has(POD.id), 3_000);
    const refused = expect(late).rejects.toMatchObject({
      code: "POD_POLICY_LATE",
      message: expect.stringContaining("no interface"),
    });
    await on.clock.advance(4_000);
    await refused;
    await on.stop();
  });

  it("a target that is away is asked again and loses nothing, and the loop is never stuck by it", async () => {
    const on = start();
    on.break(true);
    on.tell({ endpoints: { set: [POD], remove: [] } });
    await on.clock.advance(60_000);
    expect([on.applied.length, on.loop.ready, on.loop.stuck(60_000)]).toEqual([0, false, undefined]);
    on.break(false);
    await on.clock.advance(60_000);
    expect(on.loop.ready).toBe(true);
    expect(on.loop.model.endpoints.get(POD.id)).toBe(POD);
    await on.stop();
  });

  it("a route is no problem any more when its interface came, which no delta says", async () => {
    const on = start();
    on.waitFor([{ kind: "route", id: "10.0.0.1/32", failed: errors.AGENT_NOT_READY("no interface") }]);
    on.tell({});
    await on.clock.advance(1_000);
    expect(on.loop.problems()).toHaveLength(1);
    on.waitFor([]);
    await on.clock.advance(60_000);
    expect(on.loop.problems()).toEqual([]);
    await on.stop();
  });

  it("compares everything with the kernel now and then", async () => {
    const on = start();
    on.tell({});
    await on.clock.advance(200_000);
    expect(on.counts().resyncs).toBe(2);
    await on.stop();
  });
});
