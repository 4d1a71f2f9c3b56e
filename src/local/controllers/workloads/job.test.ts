import { afterEach, describe, expect, it } from "vitest";
import { JOBS } from "../../../cluster/kinds.ts";
import { fakeClock } from "../../../kit/fake-clock.ts";
import { type SmallCluster, smallCluster, template } from "../testing/small-cluster.ts";
import type { Job, Pod } from "../workload-types.ts";
import { formatIndexes, parseIndexes } from "./index-ranges.ts";
import { planJob } from "./job-plan.ts";

const backup = { name: "backup", namespace: "default" };

function job(behaviour: string, spec: Partial<Job["spec"]> = {}): Job {
  const work = template("backup", { "local.vendor.io/behaviour": behaviour });
  work.spec.restartPolicy = "Never";
  return { apiVersion: "batch/v1", kind: "Job", metadata: { ...backup }, spec: { template: work, ...spec } };
}

function condition({ status }: Job, type: string) {
  return status?.conditions?.find((found) => found.type === type);
}

describe("a job", () => {
  let cluster: SmallCluster | undefined;
  afterEach(async () => {
    await cluster?.stop();
    cluster = undefined;
  });

  it("is complete after as many pods as it asks for have succeeded", async () => {
    cluster = await smallCluster();
    await cluster.client.create(JOBS, job("complete", { completions: 3, parallelism: 2 }));
    const done = await cluster.until<Job>(JOBS, backup, (seen) => condition(seen, "Complete")?.status === "True");
    expect(done.status).toMatchObject({ succeeded: 3 });
    expect(done.status?.completionTime).toBeDefined();
    expect(await cluster.pods()).toHaveLength(3);
  });

  it("has failed when its pods fail more often than it allows", async () => {
    cluster = await smallCluster();
    await cluster.client.create(JOBS, job("exit:3", { backoffLimit: 0 }));
    const failed = await cluster.until<Job>(JOBS, backup, (seen) => condition(seen, "Failed")?.status === "True");
    expect(condition(failed, "Failed")).toMatchObject({
      reason: "BackoffLimitExceeded",
      message: "Job has reached the specified backoff limit",
    });
    const [pod] = await cluster.pods();
    expect(pod?.status?.containerStatuses?.[0]?.state.terminated?.exitCode).toBe(3);
  });

  it("goes away with its pods when its time after finishing is over", async () => {
    cluster = await smallCluster();
    await cluster.client.create(JOBS, job("complete", { ttlSecondsAfterFinished: 0 }));
    await cluster.untilGone(JOBS, backup);
    await cluster.untilPods((pods) => pods.length === 0);
  });

  it("runs each index once, and says which are done", async () => {
    cluster = await smallCluster();
    await cluster.client.create(JOBS, job("complete", { completionMode: "Indexed", completions: 4, parallelism: 4 }));
    const done = await cluster.until<Job>(JOBS, backup, (seen) => condition(seen, "Complete")?.status === "True");
    expect(done.status?.completedIndexes).toBe("0-3");
  });

  it("waits longer after each failure", () => {
    const clock = fakeClock(Date.parse("2026-01-01T00:00:00Z"));
    const failed = (seconds: number): Pod => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: `p${seconds}` },
      spec: { containers: [] },
      status: {
        phase: "Failed",
        containerStatuses: [
          {
            name: "main",
            image: "",
            imageID: "",
            ready: false,
            restartCount: 0,
            lastState: {},
            state: { terminated: { exitCode: 1, finishedAt: `2026-01-01T00:00:0${seconds}Z` } },
          },
        ],
      },
    });
    const plan = (pods: Pod[]) =>
      planJob({ job: job("run", { completions: 1 }), pods, settled: true, now: clock.now() });
    expect(plan([failed(0)])).toMatchObject({ create: [], recheckMs: 10_000 });
    expect(plan([failed(0), failed(0)])).toMatchObject({ create: [], recheckMs: 20_000 });
  });

  it("writes sets of indexes as ranges", () => {
    expect(formatIndexes([5, 0, 2, 1])).toBe("0-2,5");
    expect(parseIndexes("0-2,5")).toEqual([0, 1, 2, 5]);
  });
});
