/** Tables that are the same whichever data plane acts: they print the model. */
import type { DataplaneModel } from "../calc/model.ts";
import type { Table } from "./contract.ts";

export function policiesTable({ policies }: DataplaneModel): Table {
  return {
    columns: ["policy", "tier", "order", "ingress rules", "egress rules"],
    rows: [...policies.values()].map(({ id, tier, order, ingress, egress }) => [
      ...[id, tier, order === null ? "last" : String(order)],
      ...[String(ingress.length), String(egress.length)],
    ]),
  };
}

export function setsTable({ ipSets }: DataplaneModel): Table {
  return {
    columns: ["set", "kind", "members", "stands for"],
    rows: [...ipSets.values()].map(({ id, kind, members, meaning }) => [id, kind, String(members.length), meaning]),
  };
}

export function routesTable({ routes }: DataplaneModel): Table {
  return {
    columns: ["to", "kind", "node", "via", "encapsulation"],
    rows: [...routes.values()].map(({ cidr, kind, node, nextHop, interfaceName, encapsulation }) => [
      ...[cidr, kind, node ?? "-"],
      ...[nextHop ?? interfaceName ?? "-", encapsulation],
    ]),
  };
}

export function sortedTable({ columns, rows }: Table): Table {
  return { columns, rows: [...rows].sort((a, b) => (a.join("\0") < b.join("\0") ? -1 : 1)) };
}
