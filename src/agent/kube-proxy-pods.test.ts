import { expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { isKubeProxyScheduled } from "./kube-proxy-pods.ts";

const LABELS = { "k8s-app": "kube-proxy" };

function pod(metadata: Partial<KubeObject["metadata"]>, nodeName = "a", phase = "Pending"): KubeObject {
  const named = { name: "kube-proxy-x", namespace: "kube-system", ...metadata };
  return { apiVersion: "v1", kind: "Pod", metadata: named, spec: { nodeName }, status: { phase } };
}

const owner = { apiVersion: "apps/v1", kind: "DaemonSet", name: "kube-proxy", uid: "1" };

it.each([
  ["labelled", pod({ labels: LABELS }), true],
  ["a static pod", pod({ labels: { component: "kube-proxy" } }), true],
  ["of the DaemonSet", pod({ ownerReferences: [owner] }), true],
  ["on another node", pod({ labels: LABELS }, "b"), false],
  ["terminating", pod({ labels: LABELS, deletionTimestamp: "2026-01-01T00:00:00Z" }), false],
  ["finished", pod({ labels: LABELS }, "a", "Failed"), false],
  ["a tenant's", pod({ labels: LABELS, namespace: "shop" }), false],
  ["another program", pod({ labels: { "k8s-app": "kube-dns" } }), false],
])("kube-proxy, %s: is expected on this node if it is the cluster's and runs here", (_which, one, expected) => {
  expect(isKubeProxyScheduled([one], "a")).toBe(expected);
});
