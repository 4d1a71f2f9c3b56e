import { afterAll, beforeAll, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { type ClusterState, settledState, untilState } from "../support/procedure-state.ts";

let cluster: LocalCluster;
let tool: InProcessVendorctl;
let initial: ClusterState;
const POOL = { name: "pods", cidr: "10.244.0.0/17", encapsulation: "IPIPCrossSubnet" };

beforeAll(async () => {
  cluster = await startCluster({ name: "tunnels", kind: "generic", nodes: 2 });
  tool = inProcessVendorctl(cluster.kubeconfig);
  const pool = Object.entries(POOL).flatMap(([field, value]) => [
    "--set",
    `spec.vendorNetwork.ipPools[0].${field}=${value}`,
  ]);
  await tool.ok("install", "-y", "--dataplane", "standard", ...pool);
  const spec = { cidr: "10.244.128.0/17", ipipMode: "Always", natOutgoing: true, blockSize: 26, nodeSelector: "all()" };
  await cluster.client.create(storedKind("ipPool"), {
    ...{ apiVersion: "crd.vendor.io/v1", kind: "IPPool", metadata: { name: "by-hand" }, spec },
  } as KubeObject);
  initial = await settledState(cluster.client);
});
afterAll(async () => {
  tool?.close();
  await cluster?.close();
});

const pools = async () =>
  (await cluster.client.list<KubeObject>(storedKind("ipPool"))).items.map(({ metadata, spec }) => {
    const { ipipMode, vxlanMode } = spec as Record<string, string>;
    return [metadata.name, ipipMode, vxlanMode, metadata.annotations?.["vendor.io/ready-tunnels"]];
  });

it("eBPF is refused while pools use IPIP, and the refusal names the command", async () => {
  const { exit, out, err } = await tool.run("switch", "--to", "BPF", "-y");
  expect(exit).toBe(3);
  expect(`${out}${err}`).toContain("vendorctl migrate encapsulation --to vxlan");
  expect(await untilState(cluster.client, initial)).toEqual([]);
});

it("pools of the Installation and others change, and nothing of the change is left", async () => {
  await tool.ok("migrate", "encapsulation", "--to", "vxlan-cross-subnet", "-y");
  expect((await pools()).sort()).toEqual([
    ["by-hand", "Never", "CrossSubnet", undefined],
    ["pods", "Never", "CrossSubnet", undefined],
  ]);
  const installation = await cluster.client.get<KubeObject>(storedKind("installation"), { name: "default" });
  expect(installation["spec"]).toMatchObject({
    vendorNetwork: { ipPools: [{ ...POOL, encapsulation: "VXLANCrossSubnet" }] },
  });
  expect(await tool.ok("migrate", "encapsulation", "--to", "vxlan-cross-subnet", "-y")).toContain("already");
});

it("a rollback restores every object", async () => {
  await tool.ok("rollback", "-y");
  expect(await untilState(cluster.client, initial)).toEqual([]);
});
