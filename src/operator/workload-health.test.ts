import { describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import type { Pod, Workload } from "../api/workload-objects.ts";
import { podsToAssess, workloadHealth } from "./workload-health.ts";

const NAMES = ["DaemonSet vendor-node"];

function agents(updated: number, available: number, observedGeneration = 2): Workload {
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: "vendor-node", namespace: "vendor-system", generation: 2 },
    status: {
      observedGeneration,
      desiredNumberScheduled: 3,
      updatedNumberScheduled: updated,
      numberAvailable: available,
    },
  };
}

function pod(status: Pod["status"]): Pod {
  const owner = { apiVersion: "apps/v1", kind: "DaemonSet", name: "vendor-node", uid: "u" };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "vendor-node-x", namespace: "vendor-system", ownerReferences: [owner] },
    spec: { nodeName: "node-7" },
    status,
  };
}

const since = [{ type: "Ready", status: "False", lastTransitionTime: "2030-01-01T10:00:00Z" }];
const crash: Pod["status"] = {
  conditions: since,
  containerStatuses: [
    {
      name: "agent",
      state: { waiting: { reason: "CrashLoopBackOff" } },
      lastState: { terminated: { exitCode: 2, message: "no map\n" } },
    },
  ],
};
const pull: Pod["status"] = {
  conditions: since,
  initContainerStatuses: [{ name: "init", state: { waiting: { reason: "ErrImagePull", message: "not found" } } }],
};
const unschedulable: Pod["status"] = {
  conditions: [
    {
      type: "PodScheduled",
      status: "False",
      reason: "Unschedulable",
      message: "0/3 nodes fit",
      lastTransitionTime: "2030-01-01T10:00:00Z",
    },
  ],
};

const running: Pod["status"] = {
  phase: "Running",
  conditions: since,
  containerStatuses: [{ name: "agent", ready: false, state: { running: {} } }],
};
const creating: Pod["status"] = {
  phase: "Pending",
  conditions: since,
  containerStatuses: [{ name: "agent", ready: false, state: { waiting: { reason: "ContainerCreating" } } }],
};
const node = (status: "Unknown" | "False", message: string): KubeObject => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "node-7" },
  status: { conditions: [{ type: "Ready", status, message, lastTransitionTime: "2030-01-01T10:04:50Z" }] },
});
const soon = [{ type: "Ready", status: "False", lastTransitionTime: "2030-01-01T10:04:40Z" }];
const NOW = Date.parse("2030-01-01T10:05:00Z");

describe("the health of a workload", () => {
  it.each<[string, Workload[], Pod[], object, (KubeObject[] | string)?]>([
    ["not made yet", [], [], { is: "progressing", waitingFor: "DaemonSet vendor-node to be created" }],
    [
      "not seen yet",
      [agents(3, 3, 1)],
      [],
      { is: "progressing", waitingFor: "DaemonSet vendor-system/vendor-node to be rolled out" },
    ],
    [
      "rolling",
      [agents(1, 3)],
      [],
      { is: "progressing", waitingFor: "DaemonSet vendor-system/vendor-node to roll out: 1 of 3 pods updated" },
    ],
    [
      "starting",
      [agents(3, 2)],
      [],
      { is: "progressing", waitingFor: "DaemonSet vendor-system/vendor-node: 2 of 3 pods available" },
    ],
    ["well, whatever a pod says", [agents(3, 3)], [pod(crash)], { is: "well" }],
    [
      "crashing",
      [agents(3, 2)],
      [pod(crash)],
      {
        is: "failing",
        reason: "PodCrashLoopBackOff",
        message:
          "Pod vendor-system/vendor-node-x on node node-7 container agent: CrashLoopBackOff, last exit 2 (no map) since 2030-01-01T10:00:00Z. Last event: Back-off. Next: kubectl -n vendor-system logs vendor-node-x -c agent --previous",
      },
    ],
    ["without its image", [agents(3, 2)], [pod(pull)], { is: "failing", reason: "PodErrImagePull" }],
    ["without a node", [agents(3, 2)], [pod(unschedulable)], { is: "failing", reason: "PodUnschedulable" }],
    [
      "running, and not ready for minutes",
      [agents(3, 2)],
      [pod(running)],
      {
        is: "failing",
        reason: "PodNotReady",
        message:
          "Pod vendor-system/vendor-node-x on node node-7 container agent runs and is not ready, since 2030-01-01T10:00:00Z. Last event: Back-off. Next: kubectl -n vendor-system logs vendor-node-x -c agent",
      },
    ],
    [
      "started, and waiting for a volume",
      [agents(3, 2)],
      [pod(creating)],
      {
        is: "failing",
        reason: "PodNotStarted",
        message: expect.stringContaining("container agent: ContainerCreating since 2030-01-01T10:00:00Z. Last event: "),
      },
    ],
    [
      "on a node that is off: the kubelet's last word is that the pod is ready",
      [agents(3, 2)],
      [pod({ ...running, containerStatuses: [{ name: "agent", ready: true, state: { running: {} } }] })],
      {
        is: "failing",
        reason: "NodeNotReady",
        message:
          "Node node-7 is not ready (Kubelet stopped posting node status) since 2030-01-01T10:04:50Z: Pod vendor-system/vendor-node-x is not ready. Next: kubectl describe node node-7",
      },
      [node("Unknown", "Kubelet stopped posting node status.")],
    ],
    [
      "on a node that waits for the CNI configuration that the pod brings",
      [agents(3, 2)],
      [pod({ ...running, conditions: soon })],
      { is: "progressing" },
      [node("False", "network not ready: NetworkReady=false reason:NetworkPluginNotReady message:no config")],
    ],
    [
      "not created, because of a quota",
      [agents(2, 2)],
      [],
      {
        is: "failing",
        reason: "PodsNotCreated",
        message:
          "DaemonSet vendor-system/vendor-node to roll out: 2 of 3 pods updated, and its pods are not created: exceeded quota. Next: kubectl -n vendor-system describe daemonset vendor-node",
      },
      "exceeded quota",
    ],
    ["running, and not ready yet", [agents(3, 2)], [pod({ ...running, conditions: soon })], { is: "progressing" }],
  ])("%s", (_what, workloads, pods, health, given = []) => {
    const [nodes, notCreated] = typeof given === "string" ? [[], given] : [given, undefined];
    const assessed = { workloads, pods, nodes, now: NOW };
    expect(workloadHealth(NAMES, assessed, { event: "Back-off", notCreated })).toMatchObject(health);
  });
});

describe("a pod that cannot be scheduled", () => {
  const node = (status: "True" | "False", lastTransitionTime: string) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "node-7" },
    status: { conditions: [{ type: "Ready", status, lastTransitionTime }] },
  });
  const pods = [pod(unschedulable), pod(crash)];

  it.each([
    ["waits while no node is Ready, which is how an installation begins", [node("False", "2030-01-01T09:00:00Z")], 1],
    ["is given a moment after the first node became Ready", [node("True", "2030-01-01T10:04:50Z")], 1],
    ["is reported when there is a node that should take it", [node("True", "2030-01-01T10:04:00Z")], 2],
    ["is reported when there are no nodes at all", [], 2],
  ])("%s", (_what, nodes, assessed) => {
    expect(podsToAssess(pods, nodes, NOW)).toHaveLength(assessed);
  });
});
