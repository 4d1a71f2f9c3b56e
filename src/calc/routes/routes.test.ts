import { expect, it } from "vitest";
import type { IPPool } from "../../api/resources/ip-pool.ts";
import type { ClusterNode, Route } from "../model.ts";
import { TableDiff } from "../table-diff.ts";
import { Routes } from "./routes.ts";

const node = (name: string, address: string, subnet: string): [string, ClusterNode] => [
  name,
  {
    ...{ name, local: name === "here", addressV4: address, addressV6: null, subnetV4: subnet, subnetV6: null },
    ...{ addresses: [], dataplane: null, vtep: { mac: "", addressV4: "10.244.0.1", addressV6: null } },
  },
];
const NODES = new Map([
  node("here", "10.0.1.1", "10.0.1.0/24"),
  node("near", "10.0.1.2", "10.0.1.0/24"),
  node("far", "10.0.2.1", "10.0.2.0/24"),
]);

/** Next hops of the blocks of both other nodes. */
function nextHops(vxlanMode: "Never" | "CrossSubnet", bgp: boolean): (string | null)[] {
  const table = new TableDiff<Route>();
  const routes = new Routes("here", table, { bgp });
  const pool = { metadata: { name: "p" }, spec: { cidr: "10.244.0.0/16", vxlanMode } } as IPPool;
  routes.know([pool], NODES);
  for (const [at, name] of ["near", "far"].entries()) {
    routes.problems(name, [{ is: "pods", net: `10.244.${at}.0/26`, node: name }]);
  }
  routes.settle();
  return ["10.244.0.0/26", "10.244.1.0/26"].map((net) => table.get(net)!.nextHop);
}

it("BGP leads to nodes of other subnets where a pool has no encapsulation, and nowhere else", () => {
  expect(nextHops("Never", false)).toEqual(["10.0.1.2", "10.0.2.1"]);
  expect(nextHops("Never", true)).toEqual(["10.0.1.2", null]);
  expect(nextHops("CrossSubnet", true)).toEqual(["10.0.1.2", "10.244.0.1"]);
});
