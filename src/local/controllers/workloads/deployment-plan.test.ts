import { describe, expect, it } from "vitest";
import { template } from "../testing/small-cluster.ts";
import type { Deployment, DeploymentStatus, ReplicaSet } from "../workload-types.ts";
import { planDeployment } from "./deployment-plan.ts";
import { DESIRED_REPLICAS, MAX_REPLICAS, REVISION } from "./deployment-revisions.ts";

const NOW = Date.parse("2026-01-01T01:00:00Z");

function deployment(spec: Partial<Deployment["spec"]> = {}, status?: DeploymentStatus): Deployment {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "default", uid: "d", generation: 2 },
    spec: {
      replicas: 10,
      selector: { matchLabels: { app: "web" } },
      template: template("web", {}, "web:2"),
      progressDeadlineSeconds: 600,
      ...spec,
    },
    status,
  };
}

function set(name: string, image: string, replicas: number, available: number, sizedFor = 10): ReplicaSet {
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name,
      namespace: "default",
      generation: 1,
      creationTimestamp: `2026-01-01T00:00:0${image.slice(-1)}Z`,
      annotations: {
        [REVISION]: image.slice(-1),
        [DESIRED_REPLICAS]: String(sizedFor),
        [MAX_REPLICAS]: String(sizedFor + Math.ceil(sizedFor / 4)),
      },
    },
    spec: { replicas, selector: {}, template: template("web", {}, image) },
    status: { replicas, availableReplicas: available, readyReplicas: available, observedGeneration: 1 },
  };
}

function sizes(observed: Deployment, replicaSets: ReplicaSet[]): Record<string, number> {
  const plan = planDeployment({ deployment: observed, replicaSets, runningPods: () => 0, now: NOW });
  return Object.fromEntries(plan.update.map((update) => [update.set.metadata.name, update.replicas]));
}

function progress(observed: Deployment, replicaSets: ReplicaSet[]) {
  const plan = planDeployment({ deployment: observed, replicaSets, runningPods: () => 0, now: NOW });
  return plan.status.conditions?.find(({ type }) => type === "Progressing");
}

describe("a step of a rolling update", () => {
  it("first grows the new set as far as the surge allows", () => {
    // 25% of ten rounds up to three extra pods.
    expect(sizes(deployment(), [set("old", "web:1", 10, 10), set("new", "web:2", 0, 0)])).toMatchObject({ new: 3 });
  });

  it("then shrinks the old ones as far as availability allows", () => {
    // 25% of ten rounds down to two missing: eight must serve.
    expect(sizes(deployment(), [set("old", "web:1", 10, 10), set("new", "web:2", 3, 0)])).toMatchObject({ old: 8 });
  });

  it("gives up old pods that do not serve before those that do", () => {
    const sets = [set("broken", "web:0", 2, 0), set("old", "web:1", 8, 8), set("new", "web:2", 3, 0)];
    expect(sizes(deployment(), sets)).toMatchObject({ broken: 0 });
  });

  it("is not taken while the deployment is paused", () => {
    const plan = planDeployment({
      deployment: deployment({ paused: true }),
      replicaSets: [set("old", "web:1", 10, 10)],
      runningPods: () => 0,
      now: NOW,
    });
    expect(plan.create).toBeUndefined();
    expect(plan.update).toEqual([]);
    expect(plan.status.conditions?.find(({ type }) => type === "Progressing")?.reason).toBe("DeploymentPaused");
  });
});

describe("scaling in the middle of a rollout", () => {
  it("keeps every set its share", () => {
    const sets = [set("old", "web:1", 8, 8), set("new", "web:2", 5, 5)];
    expect(sizes(deployment({ replicas: 20 }), sets)).toEqual({ old: 15, new: 10 });
  });
});

describe("history", () => {
  it("beyond the limit is forgotten, oldest first, once the rollout is done", () => {
    const old = [1, 2, 3].map((n) => set(`r${n}`, `web:${n}`, 0, 0));
    const current = set("now", "web:4", 10, 10);
    const done = deployment({ template: template("web", {}, "web:4"), revisionHistoryLimit: 1 });
    const plan = planDeployment({ deployment: done, replicaSets: [...old, current], runningPods: () => 0, now: NOW });
    expect(plan.remove.map(({ metadata }) => metadata.name)).toEqual(["r1", "r2"]);
  });
});

describe("what a rollout says of itself", () => {
  const standing: DeploymentStatus = {
    observedGeneration: 2,
    replicas: 11,
    updatedReplicas: 3,
    readyReplicas: 8,
    availableReplicas: 8,
    unavailableReplicas: 3,
    conditions: [
      { type: "Progressing", status: "True", reason: "ReplicaSetUpdated", lastUpdateTime: "2026-01-01T00:50:00Z" },
    ],
  };
  const sets = [set("old", "web:1", 8, 8), set("new", "web:2", 3, 0)];

  it("is that it failed, after standing still past its deadline", () => {
    expect(progress(deployment({}, standing), sets)).toMatchObject({
      status: "False",
      reason: "ProgressDeadlineExceeded",
      message: 'ReplicaSet "new" has timed out progressing.',
    });
  });

  it("is that it progresses, as soon as one more pod is up", () => {
    const moved = [set("old", "web:1", 8, 8), set("new", "web:2", 3, 1)];
    expect(progress(deployment({}, standing), moved)).toMatchObject({ status: "True", reason: "ReplicaSetUpdated" });
  });
});
