import { list, mapOf, object, text } from "./describe.ts";
import { policyRule } from "./policy-rule.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";

export const profile = defineResource({
  noun: "profile",
  api: "v3",
  namespaced: false,
  description: "Rules and labels an endpoint has by belonging to something; asked after all policies.",
  spec: object("The profile.", {
    ingress: list("Rules for traffic to the endpoint.", policyRule),
    egress: list("Rules for traffic from the endpoint.", policyRule),
    labelsToApply: mapOf("Labels every endpoint with this profile has.", text("Value of the label.")),
  }),
  columns: [AGE],
});

export type Profile = ObjectOf<typeof profile>;
