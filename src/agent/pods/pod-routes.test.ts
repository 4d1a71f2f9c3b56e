import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { fakeKernel } from "../../kernel/fake/fake-kernel.ts";
import { MAIN_TABLE } from "../../kernel/netlink/netlink-port.ts";
import { followPodRoutes } from "./pod-routes.ts";

/** Events arrive in the next turn, and are acted on in the one after. */
async function settled(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

it("follows routes to single addresses, and the names of their interfaces, until closed", async () => {
  const netlink = fakeKernel().netlink();
  const connect = (name: string, destination: string) => {
    netlink.addVeth({ name, peer: { name: `peer-${name}` } });
    const { index: device } = netlink.link(name)!;
    netlink.changeLink(device, { up: true });
    netlink.replaceRoute({ destination, type: "unicast", table: MAIN_TABLE, protocol: 3, device });
    return device;
  };
  connect("eni1", "10.0.0.1/32");
  connect("eth1", "10.9.0.0/24");
  let found: Record<string, string> = {};
  let changes = 0;
  const calculator = {
    setPodInterfaces(interfaces: ReadonlyMap<string, string>) {
      found = Object.fromEntries(interfaces);
    },
  };
  const watch = followPodRoutes(netlink, calculator, () => {
    changes++;
  });
  expect([found, changes]).toEqual([{ "10.0.0.1": "eni1" }, 0]);
  const device = connect("veth7", "fd00::7/128");
  await settled();
  expect(found).toEqual({ "10.0.0.1": "eni1", "fd00::7": "veth7" });
  expect(changes).toBeGreaterThan(0);
  netlink.changeLink(device, { name: "azv7" });
  await settled();
  expect(found).toEqual({ "10.0.0.1": "eni1", "fd00::7": "azv7" });
  await netlink.deleteLink(device);
  await settled();
  expect(found).toEqual({ "10.0.0.1": "eni1" });
  watch.close();
  connect("eni2", "10.0.0.2/32");
  await settled();
  expect(found).toEqual({ "10.0.0.1": "eni1" });
});
