import { object, setOf, text } from "./describe.ts";
import { AGE, defineResource, type ObjectOf, type PrinterColumn } from "./resource.ts";

const spec = object("The addresses.", {
  nets: setOf("Prefixes and addresses in the set.", text("A prefix or an address.")),
});
const columns: PrinterColumn[] = [
  AGE,
  { name: "Nets", type: "string", jsonPath: ".spec.nets", description: "What is in the set", priority: 1 },
];

export const networkSet = defineResource({
  noun: "networkSet",
  api: "v3",
  namespaced: true,
  description: "Addresses outside the cluster that policies of one namespace select by label.",
  spec,
  columns,
});

export const globalNetworkSet = defineResource({
  noun: "globalNetworkSet",
  api: "v3",
  namespaced: false,
  description: "Addresses outside the cluster that any policy selects by label.",
  spec,
  columns,
});

export type NetworkSet = ObjectOf<typeof networkSet>;
