import { expect, it } from "vitest";
import type { WorkloadEndpoint } from "../../calc/model.ts";
import { ModelCopy } from "../../calc/model-copy.ts";
import { settingsOf } from "../../calc/settings.ts";
import { fakeKernel } from "../../kernel/fake/fake-kernel.ts";
import { emptyDelta } from "../model-delta.ts";
import { createNatTable } from "./nat-table.ts";

const pod = (interfaceName: string): WorkloadEndpoint => ({
  ...{ id: `shop/${interfaceName}`, interfaceName, mac: null, addresses: [] },
  ...{ ingress: { tiers: [], profiles: [] }, egress: { tiers: [], profiles: [] } },
});

it("refuses what passes the node to an address of an advertised range, behind kube-proxy", async () => {
  const kernel = fakeKernel();
  const table = createNatTable({ kernel, table: "nat" });
  const said = async (serviceLoopPrevention: "Drop" | "Reject" | "Disabled") => {
    const advertised = [
      { serviceClusterIPs: [{ cidr: "10.96.0.0/12" }], serviceExternalIPs: [{ cidr: "fd00:1::/112" }] },
    ];
    const settings = settingsOf({ serviceLoopPrevention }, undefined, [], {}, advertised);
    await table.resync();
    await table.apply({ ...emptyDelta(true), settings });
    return kernel.world.home.nftCommands.at(-1) ?? "";
  };
  expect(await said("Drop")).toMatch(/chain inet nat service-loop \{ type filter hook forward priority 10;/);
  expect(await said("Reject")).toContain("ip6 daddr @service-ranges-6 counter reject with icmpx port-unreachable");
  expect(await said("Disabled")).toContain("delete chain inet nat service-loop");
  table.close();
});

it("closes interfaces of another CNI plugin whose pods are not known, and none where there are only ours", async () => {
  const kernel = fakeKernel();
  const table = createNatTable({ kernel, table: "nat" });
  const said = () => kernel.world.home.nftCommands.at(-1) ?? "";
  await table.apply({ ...emptyDelta(true), settings: new ModelCopy().settings });
  expect(said()).not.toContain("unknown-pod");
  await table.apply({
    ...emptyDelta(true),
    settings: settingsOf({ interfacePrefix: "eni" }, undefined, []),
    endpoints: { set: [pod("eni1"), pod("ven1")], remove: [] },
  });
  expect(said()).toContain("from-unknown-pod");
  expect(said()).toContain("to-unknown-pod");
  expect(said()).toContain('known-pods { "eni1" }');
  await table.apply({ ...emptyDelta(true), endpoints: { set: [pod("eni2")], remove: ["shop/eni1"] } });
  expect(said()).toContain('add element inet nat known-pods { "eni2" }');
  expect(said()).toContain('delete element inet nat known-pods { "eni1" }');
  table.close();
});
