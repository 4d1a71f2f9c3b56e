import { expect, it } from "vitest";
import type { ServicePort } from "../../../../calc/model.ts";
import { plainServicePort } from "../../../../calc/testing/service-port.ts";
import { serviceObjects } from "./service-nftables.ts";
import { serviceTransaction } from "./service-transaction.ts";

const node = { clusterCidrs: [], addresses: [] };

function service(name: string, last: number, change: Partial<ServicePort> = {}): ServicePort {
  return plainServicePort({
    ...{ id: `shop/${name}:/tcp/4`, clusterAddress: `10.96.0.${last}` },
    clusterBackends: [{ address: `10.0.0.${last}`, port: 80, local: true, node: "n" }],
    ...change,
  });
}

const change = (before: ServicePort[], after: ServicePort[]) =>
  serviceTransaction(
    before.map((row) => serviceObjects(row, node)),
    after.map((row) => serviceObjects(row, node)),
  )
    .split("\n")
    .filter(Boolean);

it("what did not change is not written", () => {
  expect(change([service("a", 1), service("b", 2)], [service("a", 1), service("b", 2)])).toEqual([]);
});

it("a change of one service touches nothing of another", () => {
  const more = { clusterBackends: [{ address: "10.0.0.9", port: 80, local: true, node: "n" }] };
  const commands = change([service("a", 1), service("b", 2)], [service("a", 1, more), service("b", 2)]);
  expect(commands.filter((command) => !command.includes("shop/a/"))).toEqual([]);
  expect(commands.at(-1)).toMatch(/^delete chain ip kube-proxy endpoint-.*10\.0\.0\.1\/80$/);
});

it("what leads somewhere goes before what it leads to", () => {
  const commands = change([service("a", 1, { affinitySeconds: 5 })], []);
  const first = (start: string) => commands.findIndex((command) => command.startsWith(start));
  const order = ["flush chain", "delete element", "delete set", "delete chain"].map(first);
  expect(order.every((at) => at >= 0)).toBe(true);
  expect(order).toEqual([...order].sort((a, b) => a - b));
});

it("a place two services claim stays with the first, and is the other's when that goes", () => {
  const claims = { externalAddresses: ["192.0.2.7"] };
  const [a, b] = [service("a", 1, claims), service("b", 2, claims)];
  const places = (commands: string[]) => commands.filter((command) => command.includes("192.0.2.7"));
  expect(places(change([], [a, b])).join()).toMatch(/shop\/a/);
  expect(places(change([a, b], [b])).map((command) => command.split(" ")[0])).toEqual(["delete", "add"]);
});
