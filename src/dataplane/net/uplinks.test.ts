import { describe, expect, it } from "vitest";
import type { Link, Route } from "../../kernel/netlink/netlink-port.ts";
import { leadsInside, type NodeLinks, uplinks, withoutEthernet } from "./uplinks.ts";

const MAC = "02:00:00:00:00:01";

type Shape = Partial<Link> & { name: string; address?: string; isDefault?: boolean };

/** Interfaces in the order given; a `master` is the number of one of them, from 1. */
function nodeWith(...shapes: Shape[]): NodeLinks {
  const links = shapes.map(
    (shape, at): Link => ({
      ...{ index: at + 1, kind: undefined, mac: MAC, mtu: 1500, up: true },
      ...{ peer: undefined, master: undefined, vxlan: undefined },
      ...shape,
    }),
  );
  const routes = shapes.flatMap(({ isDefault }, at): Route[] =>
    isDefault ? [{ destination: "0.0.0.0/0", type: "unicast", table: 254, protocol: 3, device: at + 1 }] : [],
  );
  const addresses = shapes.flatMap(({ address }, at) => (address ? [{ device: at + 1, address }] : []));
  return { links, addresses, routes: () => routes };
}

const names = (node: NodeLinks, pattern?: string) => uplinks(node, pattern).map(({ name }) => name);

describe("uplinks of a node", () => {
  it.each(["eth0", "ens5", "enp0s31f6", "enP1p1s0", "enX0", "em1", "p4p1", "bond0", "wlp3s0"])(
    "%s is one by its name, before it has an address",
    (name) => expect(names(nodeWith({ name }))).toEqual([name]),
  );

  it.each(["br0", "lan0", "eth0.100", "vmbr0", "net1"])("%s is one if it has an address of the node", (name) => {
    expect(names(nodeWith({ name }))).toEqual([]);
    expect(names(nodeWith({ name, address: "169.254.1.1/16" }))).toEqual([]);
    expect(names(nodeWith({ name, address: "10.0.0.5/24" }))).toEqual([name]);
    expect(names(nodeWith({ name, address: "fd00::5/64" }))).toEqual([name]);
  });

  it("one without an address is one if the default route leads there", () => {
    expect(names(nodeWith({ name: "lan0", isDefault: true }))).toEqual(["lan0"]);
  });

  it("a bridge or bond is one instead of its ports, a member of a VRF is one itself", () => {
    const bridge = { name: "br0", kind: "bridge", address: "10.0.0.5/24" };
    expect(names(nodeWith(bridge, { name: "eth0", master: 1 }))).toEqual(["br0"]);
    const vrf = { name: "red", kind: "vrf", address: "10.0.0.9/32" };
    expect(names(nodeWith(vrf, { name: "eth0", master: 1 }))).toEqual(["eth0"]);
  });

  it.each(["eni0a1b2c3d4e5", "cali123", "azv12ab", "veth0", "docker0", "br-0a1b", "cni0", "lo"])(
    "%s leads to pods or containers: it is none, whatever its address",
    (name) => {
      expect(leadsInside(name)).toBe(true);
      expect(names(nodeWith({ name, address: "10.0.0.5/24", isDefault: true }))).toEqual([]);
    },
  );

  it("a pattern adds what it names to what has an address", () => {
    const node = nodeWith({ name: "veth9" }, { name: "lan0", address: "10.0.0.5/24" }, { name: "eth7" });
    expect(names(node, "^veth")).toEqual(["veth9", "lan0"]);
  });

  it("one without Ethernet headers is none, and is named if it has an address of the node", () => {
    const node = nodeWith(
      { name: "eth0", address: "10.0.0.5/24" },
      { name: "tailscale0", mac: undefined, address: "100.64.0.5/32" },
    );
    expect(names(node)).toEqual(["eth0"]);
    expect(withoutEthernet(node, ["10.0.0.5"])).toEqual([]);
    expect(withoutEthernet(node, ["100.64.0.5"]).map(({ link }) => link.name)).toEqual(["tailscale0"]);
  });
});
