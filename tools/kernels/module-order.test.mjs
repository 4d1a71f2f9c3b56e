import { describe, expect, it } from "vitest";
import { dependenciesOf, modulesInOrder } from "./module-order.mjs";

const module = (depends) => Buffer.from(`ELF license=GPL\0depends=${depends}\0name=x\0`, "latin1");

describe("modules of a kernel", () => {
  it("each says what it needs", () => {
    expect(dependenciesOf(module(""))).toEqual([]);
    expect(dependenciesOf(module("udp_tunnel,ip6-udp-tunnel"))).toEqual(["udp_tunnel", "ip6_udp_tunnel"]);
    expect(dependenciesOf(Buffer.from("not a module"))).toEqual([]);
  });

  it("are loaded after what they need, once, and without what is built in", () => {
    const files = {
      vxlan: module("udp_tunnel,ipv6"),
      udp_tunnel: module("base"),
      base: module(""),
      veth: module("base"),
    };
    const order = modulesInOrder(
      ["vxlan", "veth", "built_in"],
      new Map(Object.keys(files).map((name) => [name, name])),
      (name) => files[name],
    );
    expect(order.map(({ name }) => name)).toEqual(["base", "udp_tunnel", "vxlan", "veth"]);
  });
});
