import { expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { detectClusterKind } from "./detect-cluster-kind.ts";
import type { PlatformObjects } from "./observed.ts";

const bare: PlatformObjects = { definitions: [], configMaps: [], daemonSets: [], apiService: undefined, openshift: {} };
const node = (label: string): KubeObject => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "n", labels: { [label]: "x" } },
});
const map = (name: string): KubeObject => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });

it.each<[string, Partial<PlatformObjects>, KubeObject[], string | undefined]>([
  ["a plain cluster", {}, [node("kubernetes.io/os")], undefined],
  ["ClusterVersion", { definitions: ["clusterversions.config.openshift.io"] }, [], "openshift"],
  ["node labels of the container platform", {}, [node("com.docker.ucp.collection")], "mke"],
  ["aws-auth", { configMaps: [map("aws-auth")] }, [], "eks"],
  ["a node group", {}, [node("eks.amazonaws.com/nodegroup")], "eks"],
  ["node labels of Azure", {}, [node("kubernetes.azure.com/cluster")], "aks"],
  ["an instance group", {}, [node("kops.k8s.io/instancegroup")], "iac"],
])("%s", (_what, platform, nodes, kind) => {
  expect(detectClusterKind({ platform: { ...bare, ...platform }, nodes })).toBe(kind);
});
