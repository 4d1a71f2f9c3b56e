import { expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import type { Pod } from "../api/workload-objects.ts";
import { replacedPods } from "./replaced-pods.ts";

const OLD = "typha:v3.24.5";
const workload = (spec: object, kind = "Deployment"): KubeObject => ({
  ...{ apiVersion: "apps/v1", kind, metadata: { name: "typha", namespace: "kube-system" } },
  spec: { ...spec, template: { spec: { containers: [{ image: OLD }] } } },
});
const pod = (name: string, image: string, more: Partial<Pod> = {}): Pod =>
  ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "kube-system" },
    spec: { containers: [{ image }] },
    ...more,
  }) as Pod;
const PORTS = "0/3 nodes are available: 3 node(s) didn't have free ports for the requested pod ports";
const pending = pod("typha-back", OLD, {
  status: {
    phase: "Pending",
    conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: PORTS }],
  },
});
const newer = pod("typha-new", "typha:v3.31.3");

it("a rollback waits for pods of the newer version to be replaced", () => {
  expect(replacedPods(workload({}), [pod("typha-back", OLD)])).toBe("done");
  expect(replacedPods(workload({}), [newer])).toEqual({ waitingFor: "Pod kube-system/typha-new to be replaced" });
});

it("a rollback ends with the reason of a pod that finds no node, where nothing goes before it runs", () => {
  const verdict = replacedPods(workload({ replicas: 3 }), [newer, pending]);
  expect("hopeless" in Object(verdict) && (verdict as { hopeless: Error }).hopeless.message).toContain(PORTS);
});

it.each<[why: string, workload: KubeObject, pods: Pod[]]>([
  [
    "a pod is leaving",
    workload({ replicas: 3 }),
    [{ ...newer, metadata: { ...newer.metadata, deletionTimestamp: "now" } }, pending],
  ],
  ["a quarter of the pods may go", workload({ replicas: 4 }), [newer, pending]],
  ["all go first", workload({ strategy: { type: "Recreate" } }), [newer, pending]],
  ["a DaemonSet's pod goes first", workload({}, "DaemonSet"), [newer, pending]],
])("a rollback waits on, and says the reason, while %s", (_why, image, pods) => {
  expect(replacedPods(image, pods)).toEqual({ waitingFor: expect.stringContaining(PORTS) });
});
