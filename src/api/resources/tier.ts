import { choice, number, object } from "./describe.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";

export const tier = defineResource({
  noun: "tier",
  api: "v3",
  namespaced: false,
  description: "A group of policies; tiers are asked in order, and each decides or passes on.",
  spec: object("The tier.", {
    order: number("Place among the tiers, lowest first; 1000000 where it is left out."),
    defaultAction: choice("What happens to traffic a policy of the tier selects and no rule matches.", [
      "Deny",
      "Pass",
    ]),
  }),
  columns: [
    { name: "Order", type: "number", jsonPath: ".spec.order", description: "Place among the tiers" },
    { name: "DefaultAction", type: "string", jsonPath: ".spec.defaultAction", description: "What happens at its end" },
    AGE,
  ],
});

export type Tier = ObjectOf<typeof tier>;
