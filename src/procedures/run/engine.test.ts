import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { createClient } from "../../cluster/client.ts";
import { LEASES, SECRETS } from "../../cluster/kinds.ts";
import { type BareCluster, bareCluster, cutTransport, memoryCopy, planOf, STEPS } from "../testing/bare-cluster.ts";
import { abortRun, type Engine, listRuns, resumeRun, rollbackRun, startRun } from "./engine.ts";
import type { StepEvent } from "./step-event.ts";

let cluster: BareCluster;
beforeEach(async () => {
  cluster = await bareCluster();
});
afterEach(() => cluster.close());
afterAll(() => {});

async function told(events: AsyncIterable<StepEvent>): Promise<string[]> {
  const lines: string[] = [];
  for await (const event of events) {
    if (event.event === "step" && event.state !== "running") lines.push(`${event.id} ${event.state}`);
    if (event.event === "end") lines.push(event.outcome);
  }
  return lines;
}
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "no error",
    (error: { code?: string; message: string }) => error.code ?? error.message,
  );

describe("a run", () => {
  it("does what is needed, skips what is there, and goes all the way back", async () => {
    const initial = await cluster.objects();
    expect(await told(startRun(cluster.engine(), planOf()))).toEqual([
      "already skipped",
      "create done",
      "change done",
      "patch done",
      "delete done",
      "look skipped",
      "done",
    ]);
    const changed = await cluster.objects();
    expect(changed["ConfigMap default/settings"]).toMatchObject({
      data: { mode: "new", added: "1" },
      labels: { seen: "true" },
    });
    expect(Object.keys(changed)).toContain("ConfigMap made/inside");
    expect(await told(rollbackRun(cluster.engine()))).toEqual([
      "delete undoing",
      "delete undone",
      "patch undoing",
      "patch undone",
      "change undoing",
      "change undone",
      "create undoing",
      "create undone",
      "rolled-back",
    ]);
    expect(await cluster.objects()).toEqual(initial);
  });
});
