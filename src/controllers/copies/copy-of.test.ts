import { expect, it } from "vitest";
import { copyOf } from "./copy-of.ts";

it("of a pod, has what policy is calculated from, and nothing of what it runs", () => {
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "web",
      namespace: "shop",
      uid: "u1",
      resourceVersion: "7",
      labels: { app: "web" },
      annotations: { "vendor.io/pod-ips": "10.0.0.1", "kubectl.kubernetes.io/last-applied-configuration": "{}" },
      managedFields: [{ manager: "kubelet", operation: "Update" as const }],
    },
    spec: {
      nodeName: "n1",
      serviceAccountName: "shop",
      volumes: [{ name: "secret" }],
      containers: [
        { name: "main", image: "web:1", env: [{ name: "PASSWORD", value: "x" }], ports: [{ containerPort: 80 }] },
      ],
    },
    status: {
      phase: "Running",
      podIP: "10.0.0.1",
      conditions: [
        { type: "Ready", status: "True" as const, lastProbeTime: null, lastTransitionTime: "2026-01-01T00:00:00Z" },
      ],
    },
  };
  expect(copyOf(pod)).toEqual({
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "web",
      namespace: "shop",
      uid: "u1",
      resourceVersion: "7",
      labels: { app: "web" },
      annotations: { "vendor.io/pod-ips": "10.0.0.1" },
    },
    spec: {
      nodeName: "n1",
      serviceAccountName: "shop",
      containers: [{ name: "main", ports: [{ containerPort: 80 }] }],
      initContainers: [],
    },
    status: { phase: "Running", podIP: "10.0.0.1", conditions: [{ type: "Ready", status: "True" }] },
  });
});

it("of a node, does not change with its heartbeats", () => {
  const node = (time: string) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n1" },
    spec: { podCIDRs: ["10.0.0.0/24"], taints: [] },
    status: {
      addresses: [],
      images: [{ names: [time] }],
      conditions: [{ type: "Ready", status: "True", lastHeartbeatTime: time }],
    },
  });
  expect(copyOf(node("1"))).toEqual(copyOf(node("2")));
  expect(copyOf(node("1"))["spec"]).toEqual({ podCIDRs: ["10.0.0.0/24"] });
});
