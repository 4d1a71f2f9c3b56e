import { choice, flag, list, number, object, setOf, text } from "./describe.ts";
import { policyRule } from "./policy-rule.ts";
import { AGE, defineResource, type ObjectOf, type PrinterColumn } from "./resource.ts";

/** Fields of a policy of one namespace. */
export const policyFields = {
  tier: text("The tier the policy is in; default where it is left out."),
  order: number("Place in the tier, lowest first; last where it is left out."),
  selector: text("Labels of the endpoints the policy is for; everything where it is left out."),
  serviceAccountSelector: text("Labels of the service accounts the policy is for."),
  types: setOf(
    "Directions the policy decides; found from its rules where left out.",
    choice("One direction.", ["Ingress", "Egress"]),
  ),
  ingress: list("Rules for traffic to the endpoints; the first that matches decides.", policyRule),
  egress: list("Rules for traffic from the endpoints; the first that matches decides.", policyRule),
};

/** Fields of a policy of all namespaces. */
export const globalPolicyFields = {
  ...policyFields,
  namespaceSelector: text("Labels of the namespaces whose pods the policy is for."),
  doNotTrack: flag("Only false is possible: connections are always tracked."),
  preDNAT: flag("Applies before services are translated, to nodes only; needs applyOnForward, and has no egress."),
  applyOnForward: flag("Applies also to traffic a node forwards."),
};

export const policyColumns: PrinterColumn[] = [
  { name: "Tier", type: "string", jsonPath: ".spec.tier", description: "Tier of the policy" },
  { name: "Order", type: "number", jsonPath: ".spec.order", description: "Place in the tier" },
  { name: "Selector", type: "string", jsonPath: ".spec.selector", description: "What it is for" },
  AGE,
  { name: "Types", type: "string", jsonPath: ".spec.types", description: "Directions it decides", priority: 1 },
];

export const networkPolicy = defineResource({
  noun: "networkPolicy",
  api: "v3",
  namespaced: true,
  description: "What traffic the pods of one namespace may have.",
  spec: object("The policy.", policyFields),
  columns: policyColumns,
});

export const globalNetworkPolicy = defineResource({
  noun: "globalNetworkPolicy",
  api: "v3",
  namespaced: false,
  description: "What traffic pods of any namespace, and nodes, may have.",
  spec: object("The policy.", globalPolicyFields),
  columns: policyColumns,
});

export type NetworkPolicy = ObjectOf<typeof networkPolicy>;
export type GlobalNetworkPolicy = ObjectOf<typeof globalNetworkPolicy>;
