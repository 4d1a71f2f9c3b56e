import { describe, expect, it } from "vitest";
import type { Link, Route } from "../../kernel/netlink/netlink-port.ts";
import { V4, V6 } from "../../kit/ip.ts";
import { detectAddress, type NodeInterfaces } from "./detect-address.ts";

const link = (index: number, name: string, up = true): Link => ({
  ...{ index, name, up, kind: undefined, mac: undefined, mtu: 1500 },
  ...{ peer: undefined, master: undefined, vxlan: undefined },
});

const route = (destination: string, device: number, source?: string): Route => ({
  ...{ destination, device, type: "unicast", table: 254, protocol: 4 },
  ...(source ? { source } : {}),
});

const ON: NodeInterfaces = {
  links: [
    link(1, "lo"),
    link(2, "docker0"),
    link(3, "ven0123456789a"),
    link(4, "eth0"),
    link(5, "eth1"),
    link(6, "eth2", false),
  ],
  addresses: [
    { device: 1, address: "127.0.0.1/8" },
    { device: 2, address: "172.17.0.1/16" },
    { device: 3, address: "10.244.0.1/32" },
    { device: 4, address: "169.254.9.9/16" },
    { device: 4, address: "192.168.1.10/24" },
    { device: 4, address: "fe80::1/64" },
    { device: 4, address: "fd00::10/64" },
    { device: 5, address: "10.9.0.10/24" },
    { device: 5, address: "10.9.0.11/24" },
    { device: 6, address: "203.0.113.1/24" },
  ],
  routes: [route("0.0.0.0/0", 4), route("10.0.0.0/8", 5, "10.9.0.11"), route("192.168.1.0/24", 4)],
  node: {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n" },
    status: { addresses: [{ type: "InternalIP", address: "10.9.0.10" }] },
  },
};

describe("the address other nodes reach this one by", () => {
  it.each([
    ["first-found", "192.168.1.10/24"],
    ["orchestrator-internal-ip", "10.9.0.10/24"],
    ["interface=eth1", "10.9.0.10/24"],
    ["interface=en.*,eth[12]", "10.9.0.10/24"],
    ["skip-interface=eth0", "10.9.0.10/24"],
    ["cidr=172.16.0.0/12", "172.17.0.1/16"],
    ["cidr=198.51.100.0/24,10.9.0.0/16", "10.9.0.10/24"],
    ["can-reach=10.1.2.3", "10.9.0.11/24"],
    ["can-reach=8.8.8.8", "192.168.1.10/24"],
    ["interface=eth2", undefined],
    ["interface=eth", undefined],
  ])("%s finds %s", (method, expected) => {
    expect(detectAddress(method, V4, ON)).toBe(expected);
  });

  it("of each family its own, and never one of a single link", () => {
    expect(detectAddress("first-found", V6, ON)).toBe("fd00::10/64");
    expect(detectAddress("can-reach=10.1.2.3", V6, ON)).toBeUndefined();
  });

  it("one the orchestrator knows and no interface has is taken alone", () => {
    const elsewhere = { ...ON, addresses: [] };
    expect(detectAddress("orchestrator-internal-ip", V4, elsewhere)).toBe("10.9.0.10/32");
  });
});
