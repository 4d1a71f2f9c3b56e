import { choice, integer, list, object, text } from "./describe.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";

const rules = (description: string) =>
  list(
    description,
    object(
      "One rule. Without cidr and source it matches every route.",
      {
        action: choice("What happens to a route that matches.", ["Accept", "Reject"]),
        cidr: text("The prefix to compare the route with; together with matchOperator.", {
          minLength: 3,
          maxLength: 49,
        }),
        matchOperator: choice(
          "Equal and NotEqual compare with the prefix; In and NotIn with everything inside of it.",
          [...["Equal", "NotEqual", "In", "NotIn"]] as const,
        ),
        prefixLength: object("With In and NotIn: only routes of these lengths are inside.", {
          min: integer("Least length.", { minimum: 0, maximum: 128 }),
          max: integer("Greatest length.", { minimum: 0, maximum: 128 }),
        }),
        source: choice("RemotePeers: only routes that were learned by BGP.", ["RemotePeers"]),
      },
      ["action"],
    ),
  );

export const bgpFilter = defineResource({
  noun: "bgpFilter",
  api: "v3",
  namespaced: false,
  description: "Which routes nodes accept from peers and announce to them; BGPPeers name it.",
  spec: object("The rules. The first that matches decides; a route that none matches is treated as without a filter.", {
    importV4: rules("For IPv4 routes that a peer announces."),
    exportV4: rules("For IPv4 routes that the node announces."),
    importV6: rules("For IPv6 routes that a peer announces."),
    exportV6: rules("For IPv6 routes that the node announces."),
  }),
  columns: [AGE],
});

export type BGPFilter = ObjectOf<typeof bgpFilter>;
