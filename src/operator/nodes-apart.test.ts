import { expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import type { IPPool } from "../api/resources/ip-pool.ts";
import { nodesApart } from "./nodes-apart.ts";

function node(name: string, v4?: string, v6?: string): KubeObject {
  const annotations = { ...(v4 && { "vendor.io/ipv4-address": v4 }), ...(v6 && { "vendor.io/ipv6-address": v6 }) };
  return { apiVersion: "v1", kind: "Node", metadata: { name, annotations } };
}

const pool = (spec: IPPool["spec"]) => ({ spec });
const PLAIN = pool({ cidr: "10.244.0.0/16", ipipMode: "Never", vxlanMode: "Never" });
const NEAR = [node("a", "10.0.0.1/24"), node("b", "10.0.0.2/24")];
const FAR = node("c", "10.0.1.1/24");

it("names nodes of different subnets if a pool of their family has no encapsulation", () => {
  expect(nodesApart([...NEAR, FAR], [PLAIN])).toEqual(["a, b in 10.0.0.0/24 and c in 10.0.1.0/24"]);
  const six = [node("a", undefined, "fd00::1/64"), node("b", undefined, "fd00:0:0:1::1/64")];
  const plainSix = pool({ cidr: "fd10::/48", ipipMode: "Never", vxlanMode: "Never" });
  expect(nodesApart(six, [plainSix])).toEqual(["a in fd00::/64 and b in fd00:0:0:1::/64"]);
  expect(nodesApart(six, [PLAIN])).toEqual([]);
});

it("a router is in between if one of two does not see the other as its neighbour", () => {
  expect(nodesApart([node("a", "10.0.0.1/16"), node("b", "10.0.1.1/24")], [PLAIN])).toEqual([
    "a in 10.0.0.0/16 and b in 10.0.1.0/24",
  ]);
  expect(nodesApart([node("a", "10.0.0.1/32"), node("b", "10.0.0.2/32")], [PLAIN])).toHaveLength(1);
});

it("names none in one subnet, with a tunnel, and while nodes report no subnet", () => {
  expect(nodesApart(NEAR, [PLAIN])).toEqual([]);
  expect(nodesApart([...NEAR, FAR], [pool({ cidr: "10.244.0.0/16", vxlanMode: "CrossSubnet" })])).toEqual([]);
  expect(nodesApart([...NEAR, node("c")], [PLAIN])).toEqual([]);
  expect(nodesApart([...NEAR, node("c", "10.0.1.1")], [PLAIN])).toEqual([]);
});
