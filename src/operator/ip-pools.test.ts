import { afterEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { type IpamReport, ipamReportAnnotations } from "../api/protocol/ipam-report.ts";
import { PODS } from "../cluster/kinds.ts";
import { storedKind } from "./managed-kinds.ts";
import { type OperatorLab, operatorLab } from "./testing/operator-lab.ts";

let world: OperatorLab;
afterEach(() => world.stop());

const POOLS = storedKind("ipPool");
const network = (...ipPools: object[]) => ({ linuxDataplane: "Nftables", ipPools });
const pools = async () => (await world.kubectl.list<KubeObject>(POOLS)).items;
const create = (name: string, spec: object) =>
  world.kubectl.create(POOLS, { apiVersion: "crd.vendor.io/v1", kind: POOLS.kind, metadata: { name }, spec });

describe("IP pools", () => {
  it("are made from the installation, changed with it, and belong to nobody", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation({ vendorNetwork: network({ cidr: "10.1.0.0/16" }) });
    await world.untilStatus("ippools", "Available");
    const [pool] = await pools();
    expect(pool?.metadata).toMatchObject({ name: "default-ipv4-ippool" });
    expect(pool?.metadata.ownerReferences).toBeUndefined();
    expect(pool?.["spec"]).toMatchObject({ cidr: "10.1.0.0/16", vxlanMode: "CrossSubnet", natOutgoing: true });
    await world.patchInstallation(network({ cidr: "10.1.0.0/16", encapsulation: "VXLAN" }));
    await world.until(pools, (changed) => JSON.stringify(changed).includes('"vxlanMode":"Always"'));
  });

  it("are refused another prefix or block size under the same name, with the way out", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation({ vendorNetwork: network({ cidr: "10.1.0.0/16", name: "one" }) });
    await world.untilStatus("ippools", "Available");
    await world.patchInstallation(network({ cidr: "10.1.0.0/16", name: "one", blockSize: 28 }));
    const status = await world.untilStatus("ippools", "Degraded", "PoolFieldImmutable");
    expect(status.message).toContain("A pool's blockSize cannot change from 26 to 28.");
    expect((await pools()).map((pool) => pool["spec"])).toMatchObject([{ blockSize: 26 }]);
  });

  it("of somebody else with the same addresses are not taken: Degraded says so, and nothing changes", async () => {
    world = await operatorLab();
    await create("theirs", { cidr: "10.1.0.0/16", vxlanMode: "Always" });
    world.startOperator();
    await world.installation({ vendorNetwork: network({ cidr: "10.1.0.0/16" }) });
    const status = await world.untilStatus("ippools", "Degraded", "PoolOfAnother");
    expect(status.message).toContain("IPPool theirs (10.1.0.0/16) was not created by the operator");
    expect((await pools()).map(({ metadata }) => metadata.name)).toEqual(["theirs"]);
  });

  it("that the installation no longer lists give out nothing more, and go when their last address is back", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation({
      vendorNetwork: network({ cidr: "10.1.0.0/16", name: "one" }, { cidr: "10.2.0.0/16", name: "two" }),
    });
    await world.untilStatus("ippools", "Available");
    const blocks = storedKind("ipamBlock");
    const spec = { cidr: "10.2.0.0/26", allocations: [0, null], unallocated: [1], attributes: [{}] };
    await world.kubectl.create(blocks, {
      apiVersion: "crd.vendor.io/v1",
      kind: blocks.kind,
      metadata: { name: "10-2-0-0-26" },
      spec,
    });
    await world.patchInstallation(network({ cidr: "10.1.0.0/16", name: "one" }));
    await world.until(
      () => world.statusOf("ippools"),
      (status) => status?.message.includes("1 addresses of IPPool two to be released") === true,
    );
    expect((await pools()).map((pool) => (pool["spec"] as { disabled: boolean }).disabled)).toEqual([false, true]);
    await world.kubectl.delete(blocks, { name: "10-2-0-0-26" });
    // Blocks are not watched: another look comes within seconds.
    await world.until(pools, (left) => left.length === 1);
    await world.untilStatus("ippools", "Available");
  });

  it("with an address that two pods have are Degraded until one of them is gone", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation({ vendorNetwork: network({ cidr: "10.1.0.0/16" }) });
    await world.untilStatus("ippools", "Available");
    const ref = { namespace: "vendor-system", name: "vendor-kube-controllers-1" };
    const spec = { containers: [{ name: "main", image: "vendor" }] };
    await world.kubectl.create(PODS, { apiVersion: "v1", kind: "Pod", metadata: ref, spec });
    const report = (
      duplicates: IpamReport["duplicates"],
      leakedAddresses = 0,
      servicesWithoutAddress: IpamReport["servicesWithoutAddress"] = [],
    ) =>
      world.kubectl.patch(PODS, ref, {
        type: "merge",
        patch: {
          metadata: {
            annotations: ipamReportAnnotations({
              ...{ duplicates, leakedAddresses, blocksWithoutNode: 0, servicesWithoutAddress },
            }),
          },
        },
      });
    await report([{ address: "10.1.0.7", pods: ["shop/late", "shop/web"] }]);
    const status = await world.untilStatus("ippools", "Degraded", "AddressDuplicate");
    expect(status.message).toBe(
      "10.1.0.7 is the address of shop/late and shop/web. Fix: kubectl -n shop delete pod web",
    );
    await report([], 3);
    await world.untilStatus("ippools", "Available");
    expect((await world.statusOf("ippools"))?.message).toContain("3 addresses without a pod will be released.");
    await report([], 0, [{ service: "shop/web", why: "no address is free in services" }]);
    const said = async () => (await world.statusOf("ippools"))?.message;
    await world.until(
      said,
      (message) => message?.includes("Service shop/web has no address: no address is free in services.") === true,
    );
    await world.untilStatus("ippools", "Available");
  });
});
