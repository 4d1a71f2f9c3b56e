import { object, setOf, text } from "./describe.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";

export const ipReservation = defineResource({
  noun: "ipReservation",
  api: "v3",
  namespaced: false,
  description: "Addresses of pools that are not assigned to pods, except to a pod that requests one by name.",
  spec: object("The addresses.", {
    reservedCIDRs: setOf("Prefixes and addresses that are reserved.", text("A prefix or an address.")),
  }),
  columns: [
    AGE,
    {
      name: "Reserved",
      type: "string",
      jsonPath: ".spec.reservedCIDRs",
      description: "What is reserved",
      priority: 1,
    },
  ],
});

export type IPReservation = ObjectOf<typeof ipReservation>;
