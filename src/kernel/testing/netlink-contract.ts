import { describe, expect, it } from "vitest";
import { Assembler, R0 } from "../bpf/asm.ts";
import { MAIN_TABLE, type NetlinkEvent, type NetlinkPort, type Route } from "../netlink/netlink-port.ts";
import type { Corner } from "./contract.ts";

const OURS = { table: MAIN_TABLE, protocol: 80 } as const;

export function netlinkContract(corner: () => Corner): void {
  describe("links", () => {
    it("make a pair whose other end is in another namespace from the start", async () => {
      const { kernel, here, there } = corner();
      const [near, far] = [kernel.netlink(here), kernel.netlink(there)];
      near.addVeth({
        name: "ven0123456789",
        mac: "ee:ee:ee:ee:ee:ee",
        mtu: 1400,
        peer: { name: "eth0", netns: there, mtu: 1410, mac: "02:00:00:00:00:07" },
      });
      const host = near.link("ven0123456789")!;
      const pod = far.link("eth0")!;
      expect(host).toMatchObject({ kind: "veth", mac: "ee:ee:ee:ee:ee:ee", mtu: 1400, up: false, peer: pod.index });
      expect(pod).toMatchObject({ kind: "veth", mac: "02:00:00:00:00:07", mtu: 1410, peer: host.index });
      expect(near.link("eth0")).toBeUndefined();
      expect(() => near.addVeth({ name: "ven0123456789", peer: { name: "x" } })).toThrow(/EEXIST/);

      expect(await near.deleteLink(host.index)).toBe(true);
      expect(await near.deleteLink(host.index)).toBe(false);
      expect(far.links().map(({ name }) => name)).not.toContain("eth0");
      near.close();
      far.close();
    });

    it("change what is asked, and nothing else", () => {
      const netlink = pair(corner());
      const { index } = netlink.link("v0")!;
      netlink.addBridge("br0");
      const bridge = netlink.link("br0")!;
      netlink.changeLink(index, { mtu: 1300, master: bridge.index });
      expect(netlink.link("v0")).toMatchObject({ mtu: 1300, master: bridge.index, up: true });
      netlink.changeLink(index, { master: 0, up: false });
      expect(netlink.link("v0")).toMatchObject({ mtu: 1300, master: undefined, up: false });
      netlink.changeLink(index, { name: "renamed" });
      expect(netlink.links().map(({ name }) => name)).toEqual(expect.arrayContaining(["renamed", "v1", "br0", "lo"]));
      expect(() => netlink.changeLink(9_999, { up: true })).toThrow(expect.objectContaining({ errno: "ENODEV" }));
      netlink.close();
    });

    it("move to another namespace, and stay a pair", () => {
      const { kernel, there } = corner();
      const netlink = pair(corner());
      netlink.changeLink(netlink.link("v1")!.index, { netns: there });
      const far = kernel.netlink(there);
      expect(netlink.link("v1")).toBeUndefined();
      expect(far.link("v1")).toMatchObject({ kind: "veth", peer: netlink.link("v0")!.index });
      far.close();
      netlink.close();
    });

    it("make a tunnel, and remember which MAC is behind which address", () => {
      const netlink = pair(corner());
      const device = netlink.link("v0")!.index;
      const spec = { vni: 4096, port: 4789, local: "10.9.0.1", device };
      netlink.addVxlan({ ...spec, name: "vxlan.test", mac: "66:00:00:00:00:01", mtu: 1400 });
      const tunnel = netlink.link("vxlan.test")!;
      expect(tunnel).toMatchObject({ kind: "vxlan", mtu: 1400, mac: "66:00:00:00:00:01" });
      expect(tunnel.vxlan).toEqual({ ...spec, learning: false });

      const entry = { device: tunnel.index, mac: "66:00:00:00:00:02", destination: "10.9.0.2" };
      netlink.replaceForwarding(entry);
      netlink.replaceForwarding({ ...entry, destination: "10.9.0.3" });
      expect(netlink.forwarding()).toEqual([{ ...entry, destination: "10.9.0.3" }]);
      expect(netlink.deleteForwarding({ ...entry, destination: "10.9.0.3" })).toBe(true);
      expect(netlink.deleteForwarding({ ...entry, destination: "10.9.0.3" })).toBe(false);
      netlink.close();
    });
  });

  describe("addresses", () => {
    it("come and go, in both families, and bring their network with them", () => {
      const netlink = pair(corner());
      const device = netlink.link("v0")!.index;
      const addresses = [
        { device, address: "10.9.0.1/24" },
        { device, address: "fd00:9::1/64" },
      ];
      for (const address of addresses) netlink.addAddress(address);
      for (const address of addresses) netlink.addAddress(address);
      expect(netlink.addresses().filter(({ address }) => !address.startsWith("fe80"))).toEqual(
        expect.arrayContaining(addresses),
      );
      const connected = netlink.routes({ device, table: MAIN_TABLE }).map(({ destination }) => destination);
      expect(connected).toEqual(expect.arrayContaining(["10.9.0.0/24", "fd00:9::/64"]));
      for (const address of addresses) expect(netlink.deleteAddress(address)).toBe(true);
      for (const address of addresses) expect(netlink.deleteAddress(address)).toBe(false);
      expect(netlink.routes({ device }).some(({ destination }) => destination === "10.9.0.0/24")).toBe(false);
      netlink.close();
    });
  });

  describe("routes", () => {
    it("are read back as they were written", () => {
      const netlink = pair(corner());
      const device = netlink.link("v0")!.index;
      netlink.addAddress({ device, address: "10.9.0.1/24" });
      const routes: Route[] = [
        { ...OURS, destination: "10.1.0.0/24", type: "unicast", device },
        { ...OURS, destination: "10.2.0.0/24", type: "unicast", device, gateway: "10.9.0.2" },
        { ...OURS, destination: "10.3.0.0/24", type: "unicast", device, gateway: "169.254.1.1", onlink: true },
        { ...OURS, destination: "10.4.0.0/24", type: "blackhole" },
        { ...OURS, destination: "10.5.0.7/32", type: "unicast", device, source: "10.9.0.1", mtu: 1400 },
        { ...OURS, destination: "fd01::/64", type: "unicast", device },
        { ...OURS, destination: "fd02::/64", type: "blackhole" },
        { ...OURS, destination: "10.6.0.0/24", type: "unicast", device, table: 1000, metric: 5 },
      ];
      for (const route of routes) netlink.replaceRoute(route);
      const sorted = (list: Route[]) => [...list].sort((a, b) => a.destination.localeCompare(b.destination));
      expect(sorted(netlink.routes({ protocol: 80 }))).toEqual(sorted(routes));
      expect(netlink.routes({ table: 1000 })).toEqual([routes.at(-1)]);
      expect(netlink.routes({ table: 4711 })).toEqual([]);
      for (const route of routes) expect(netlink.deleteRoute(route)).toBe(true);
      for (const route of routes) expect(netlink.deleteRoute(route)).toBe(false);
      netlink.close();
    });

    it("replace the one to the same destination", () => {
      const netlink = pair(corner());
      const device = netlink.link("v0")!.index;
      const blackhole: Route = { ...OURS, destination: "10.4.0.0/26", type: "blackhole" };
      netlink.replaceRoute({ ...blackhole, type: "unicast", device });
      netlink.replaceRoute(blackhole);
      expect(netlink.routes({ protocol: 80 })).toEqual([blackhole]);
      netlink.close();
    });

    it("through an unreachable gateway are refused in the kernel's own words", () => {
      const netlink = pair(corner());
      const route = { ...OURS, destination: "10.7.0.0/16", type: "unicast", gateway: "10.99.0.1" } as const;
      const device = netlink.link("v0")!.index;
      expect(() => netlink.replaceRoute({ ...route, device })).toThrow(/ENETUNREACH \(Nexthop has invalid gateway\)/);
      netlink.close();
    });

    it("go with their interface", async () => {
      const netlink = pair(corner());
      const device = netlink.link("v0")!.index;
      netlink.replaceRoute({ ...OURS, destination: "10.1.0.0/24", type: "unicast", device });
      await netlink.deleteLink(device);
      expect(netlink.routes({ protocol: 80 })).toEqual([]);
      netlink.close();
    });
  });

  describe("rules", () => {
    it("choose a table, once however often they are added", () => {
      const netlink = corner().kernel.netlink(corner().here);
      const rules = [
        { family: 4, priority: 100, table: 1000, mark: 0x10, mask: 0xf0 },
        { family: 6, priority: 101, table: 1000, source: "fd00::/64" },
      ] as const;
      for (const rule of [...rules, ...rules]) netlink.addRule(rule);
      expect(netlink.rules().filter(({ table }) => table === 1000)).toEqual(rules);
      for (const rule of rules) expect(netlink.deleteRule(rule)).toBe(true);
      for (const rule of rules) expect(netlink.deleteRule(rule)).toBe(false);
      netlink.close();
    });
  });

  describe("neighbours", () => {
    it("are permanent, and changed in place", () => {
      const netlink = pair(corner());
      const device = netlink.link("v0")!.index;
      for (const address of ["10.9.0.77", "fd00::77"]) {
        netlink.replaceNeighbour({ device, address, mac: "02:00:00:00:00:01" });
        netlink.replaceNeighbour({ device, address, mac: "02:00:00:00:00:02" });
        const found = netlink.neighbours().filter((neighbour) => neighbour.address === address);
        expect(found).toEqual([{ device, address, mac: "02:00:00:00:00:02", state: "permanent" }]);
        expect(netlink.deleteNeighbour({ device, address })).toBe(true);
        expect(netlink.neighbours().some((other) => other.address === address && other.state === "permanent")).toBe(
          false,
        );
      }
      netlink.close();
    });
  });

  describe("filters", () => {
    it("hold a program at the older hook, exchanged in place", () => {
      const { bpf } = corner().kernel;
      const netlink = pair(corner());
      const device = netlink.link("v0")!.index;
      const load = (verdict: number) =>
        bpf.loadProgram({
          name: "pass",
          type: "schedCls",
          instructions: new Assembler().mov(R0, verdict).exit().build(),
        });
      const [old, fresh] = [load(0), load(-1)];
      netlink.addClsact(device);
      netlink.addClsact(device);
      const where = { device, direction: "ingress", priority: 1, handle: 1 } as const;
      for (const program of [old, fresh]) netlink.replaceFilter({ ...where, name: "ours", program });
      expect(netlink.filters(device, "ingress")).toEqual([{ ...where, name: "ours", programId: fresh.info.id }]);
      expect(netlink.filters(device, "egress")).toEqual([]);
      expect(netlink.deleteFilter(where)).toBe(true);
      expect(netlink.deleteFilter(where)).toBe(false);
      expect(netlink.deleteClsact(device)).toBe(true);
      expect(netlink.deleteClsact(device)).toBe(false);
      for (const program of [old, fresh]) program.close();
      netlink.close();
    });
  });

  describe("a monitor", () => {
    it("tells what happens, until it is closed", async () => {
      const netlink = pair(corner());
      const device = netlink.link("v0")!.index;
      const events: NetlinkEvent[] = [];
      const watch = netlink.monitor((event) => events.push(event));
      netlink.replaceRoute({ ...OURS, destination: "10.1.0.0/24", type: "unicast", device });
      netlink.replaceNeighbour({ device, address: "10.9.0.9", mac: "02:00:00:00:00:09" });
      netlink.addAddress({ device, address: "10.9.0.1/32" });
      await netlink.deleteLink(device);
      await expect
        .poll(() => events)
        .toEqual(
          expect.arrayContaining([
            expect.objectContaining({
              kind: "route",
              change: "set",
              route: expect.objectContaining({ destination: "10.1.0.0/24" }),
            }),
            expect.objectContaining({ kind: "neighbour", change: "set" }),
            { kind: "address", change: "set", address: { device, address: "10.9.0.1/32" } },
            expect.objectContaining({ kind: "link", change: "removed", link: expect.objectContaining({ name: "v0" }) }),
          ]),
        );
      watch.close();
      watch.close();
      netlink.close();
    });
  });
}

/** A pair in one namespace, up. */
function pair({ kernel, here }: Corner): NetlinkPort {
  const netlink = kernel.netlink(here);
  netlink.addVeth({ name: "v0", peer: { name: "v1" } });
  for (const name of ["v0", "v1"]) netlink.changeLink(netlink.link(name)!.index, { up: true });
  return netlink;
}
