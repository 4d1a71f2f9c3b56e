import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createClient } from "../../cluster/client.ts";
import { LEASES, SECRETS } from "../../cluster/kinds.ts";
import type { Plan, Step } from "../plan.ts";
import { applyObjectsStep, deleteObjectStep, mergePatchStep } from "../plans/steps.ts";
import { type BareCluster, bareCluster, cutTransport, logLine, planOf } from "../testing/bare-cluster.ts";
import { listRuns, resumeRun, rollbackRun, startRun } from "./engine.ts";
import { isUnfinished } from "./run-record.ts";
import type { StepEvent } from "./step-event.ts";

/** vendorctl killed at a request: nothing it would have done after that happens, and nobody lets go of the lease. */

type Mode = "before" | "after";
const MODES: Mode[] = ["before", "after"];
const NEVER = Number.MAX_SAFE_INTEGER;

async function drain(events: AsyncIterable<StepEvent>): Promise<void> {
  for await (const _ of events);
}

/** How many requests it made, and whether it got to its end. */
async function killedAt(
  cluster: BareCluster,
  at: number,
  mode: Mode,
  work: (engine: ReturnType<BareCluster["engine"]>) => AsyncIterable<StepEvent>,
): Promise<{ requests: number; ended: boolean }> {
  const killed = new AbortController();
  // A dead process waits for nothing; whatever this one still tries to write is cut as well.
  const transport = cutTransport(cluster.server.transport(), at, mode, () => killed.abort());
  const client = createClient(transport, { userAgent: "vendorctl" });
  const ended = await drain(work(cluster.engine({ client, signal: killed.signal }))).then(
    () => true,
    () => false,
  );
  return { requests: transport.count(), ended };
}

/** A process of this machine that is gone is succeeded at once; these engines share a process, so the lease is ended by hand. */
const leaseEnds = (cluster: BareCluster) =>
  cluster.client.delete(LEASES, { namespace: "kube-system", name: "vendorctl" }).catch(() => {});

/** A cluster that was rolled back is as new, but for what it remembers. */
const forget = (cluster: BareCluster) =>
  cluster.client.deleteCollection(SECRETS, {
    namespace: "kube-system",
    labelSelector: "app.kubernetes.io/managed-by=vendorctl",
  });

async function goOn(cluster: BareCluster, plan: Plan): Promise<"resumed" | "begun again" | "was done"> {
  await leaseEnds(cluster);
  const runs = await listRuns(cluster.engine());
  if (runs.some((run) => "record" in run && isUnfinished(run.record))) {
    await drain(resumeRun(cluster.engine()));
    return "resumed";
  }
  if (runs.length > 0) return "was done";
  await drain(startRun(cluster.engine(), plan));
  return "begun again";
}

async function undisturbed(plan: Plan) {
  const cluster = await bareCluster();
  const initial = await cluster.objects();
  const { requests } = await killedAt(cluster, NEVER, "before", (engine) => startRun(engine, plan));
  const done = await cluster.objects();
  const back = await killedAt(cluster, NEVER, "before", (engine) => rollbackRun(engine));
  expect(await cluster.objects()).toEqual(initial);
  await cluster.close();
  return { initial, done, requests, backRequests: back.requests };
}

describe("cut off at every request", () => {
  it.each(MODES)(
    "%s it is done, resume ends as if nothing had happened, and rollback at the beginning",
    async (mode) => {
      const plan = planOf();
      const expected = await undisturbed(plan);
      expect(expected.requests).toBeGreaterThan(30);
      for (let at = 1; at <= expected.requests; at++) {
        const cluster = await bareCluster();
        await killedAt(cluster, at, mode, (engine) => startRun(engine, plan));
        const how = await goOn(cluster, plan);
        expect(await cluster.objects(), `cut at ${at}, ${how}`).toEqual(expected.done);
        await drain(rollbackRun(cluster.engine()));
        expect(await cluster.objects(), `cut at ${at}, rolled back`).toEqual(expected.initial);
        await cluster.close();
      }
    },
  );

  it.each(MODES)("%s it is done on the way back, resume ends at the beginning", async (mode) => {
    const plan = planOf();
    const expected = await undisturbed(plan);
    const cluster = await bareCluster();
    for (let at = 1; at <= expected.backRequests; at++) {
      await forget(cluster);
      await drain(startRun(cluster.engine(), plan));
      await killedAt(cluster, at, mode, (engine) => rollbackRun(engine));
      await leaseEnds(cluster);
      const runs = await listRuns(cluster.engine());
      const open = runs.some((run) => "record" in run && isUnfinished(run.record));
      if (open) await drain(resumeRun(cluster.engine()));
      else if (runs.some((run) => "record" in run && run.record.outcome === "done"))
        await drain(rollbackRun(cluster.engine()));
      expect(await cluster.objects(), `cut at ${at}`).toEqual(expected.initial);
    }
    await cluster.close();
  });
});

const NAMES = ["a", "b", "settings", "leftover", "keys"];
const target = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", namespace: "default", name });
const aName = fc.constantFrom(...NAMES);
const someData = fc.dictionary(fc.constantFrom("mode", "keep", "by", "x"), fc.constantFrom("1", "2", "old"), {
  maxKeys: 3,
});

/** Any steps in any order, as long as each finds what it needs. */
const anyPlan = fc
  .array(
    fc.oneof(
      fc.record({ do: fc.constant("apply" as const), name: aName, data: someData }),
      fc.record({ do: fc.constant("delete" as const), name: aName }),
      fc.record({
        do: fc.constant("patch" as const),
        data: fc.dictionary(fc.constantFrom("mode", "keep", "y"), fc.option(fc.constantFrom("1", "3"))),
      }),
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((moves) =>
    planOf(
      moves.map((move, at): Step => {
        const said = logLine(`step-${at}`);
        if (move.do === "delete")
          return deleteObjectStep(said, { target: target(move.name === "settings" ? "a" : move.name) });
        if (move.do === "patch")
          return mergePatchStep(said, { target: target("settings"), patch: { data: move.data } });
        const { name, data } = move;
        return applyObjectsStep(said, {
          objects: [{ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default" }, data }],
        });
      }),
    ),
  );

describe("any plan", () => {
  it("cut off anywhere, once going forward, once while resumed and once going back, ends as if nothing had happened", async () => {
    const cut = fc.record({ at: fc.integer({ min: 1, max: 60 }), mode: fc.constantFrom(...MODES) });
    await fc.assert(
      fc.asyncProperty(anyPlan, cut, cut, cut, async (plan, first, second, third) => {
        const expected = await undisturbed(plan);
        const cluster = await bareCluster();
        try {
          await killedAt(cluster, first.at, first.mode, (engine) => startRun(engine, plan));
          await leaseEnds(cluster);
          await killedAt(cluster, second.at, second.mode, (engine) => resumeRun(engine));
          await goOn(cluster, plan);
          expect(await cluster.objects()).toEqual(expected.done);
          await killedAt(cluster, third.at, third.mode, (engine) => rollbackRun(engine));
          await leaseEnds(cluster);
          await drain(resumeRun(cluster.engine())).catch(() => {});
          await drain(rollbackRun(cluster.engine())).catch(() => {});
          expect(await cluster.objects()).toEqual(expected.initial);
        } finally {
          await cluster.close();
        }
      }),
      { numRuns: 25 },
    );
  });
});
