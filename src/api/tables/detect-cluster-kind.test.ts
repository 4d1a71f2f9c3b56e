import { expect, it } from "vitest";
import type { KubeObject } from "../object.ts";
import { detectClusterKind, type PlatformSigns } from "./detect-cluster-kind.ts";

const bare: PlatformSigns = { definitions: [], configMaps: [], nodes: [] };
const node = (label: string): KubeObject => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "n", labels: { [label]: "x" } },
});
const map = (name: string): KubeObject => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });

it.each<[string, Partial<PlatformSigns>, KubeObject[], string | undefined]>([
  ["a plain cluster", {}, [node("kubernetes.io/os")], undefined],
  ["ClusterVersion", { definitions: ["clusterversions.config.openshift.io"] }, [], "openshift"],
  ["node labels of the container platform", {}, [node("com.docker.ucp.collection")], "mke"],
  ["aws-auth", { configMaps: [map("aws-auth")] }, [], "eks"],
  ["a node group", {}, [node("eks.amazonaws.com/nodegroup")], "eks"],
  ["node labels of Azure", {}, [node("kubernetes.azure.com/cluster")], "aks"],
  ["an instance group", {}, [node("kops.k8s.io/instancegroup")], "iac"],
])("%s", (_what, platform, nodes, kind) => {
  expect(detectClusterKind({ ...bare, ...platform, nodes })?.kind).toBe(kind);
});
