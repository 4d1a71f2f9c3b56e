import { choice, duration, flag, integer, list, object, port, setOf, text } from "./describe.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";

/** An AS number of four bytes. */
export const asNumber = (description: string) => integer(description, { minimum: 1, maximum: 4_294_967_295 });

/** A password is only ever named: it is read from a Secret beside the agents. */
export const bgpPassword = (description: string) =>
  object(description, {
    secretKeyRef: object(
      "The Secret, in the namespace of the agents.",
      { name: text("Name of the Secret.", { minLength: 1 }), key: text("Key in the Secret.", { minLength: 1 }) },
      ["name", "key"],
    ),
  });

const serviceRanges = (what: string) =>
  list(
    `Ranges of ${what} that every node announces. An address in them of a Service whose traffic stays local is announced by itself, from nodes with a ready backend.`,
    object("One range.", { cidr: text("The prefix.", { minLength: 3, maxLength: 49 }) }, ["cidr"]),
  );

/** Two or three numbers: a community of RFC 1997, or a large one of RFC 8092. */
export const COMMUNITY = "^[0-9]{1,10}:[0-9]{1,10}(:[0-9]{1,10})?$";

export const bgpConfiguration = defineResource({
  noun: "bgpConfiguration",
  api: "v3",
  namespaced: false,
  description: "How nodes speak BGP: default for all of them, node.NAME for what one node does differently.",
  spec: object("The configuration.", {
    asNumber: asNumber("AS number of nodes that have none of their own (default: 64512)."),
    nodeToNodeMeshEnabled: flag("Whether every node has a session with every other node (default: true)."),
    listenPort: port("TCP port that sessions are accepted at (default: 179)."),
    bindMode: choice("NodeIP listens at the node's address only, None at every address (default: None).", [
      "None",
      "NodeIP",
    ]),
    logSeverityScreen: choice("What the BGP container logs (default: Info).", [
      ...["Debug", "Info", "Warning", "Error", "Fatal"],
    ] as const),
    serviceClusterIPs: serviceRanges("cluster IPs"),
    serviceExternalIPs: serviceRanges("external IPs"),
    serviceLoadBalancerIPs: serviceRanges("load balancer addresses"),
    communities: list(
      "Names for communities, to be used in prefixAdvertisements.",
      object(
        "One community.",
        {
          name: text("Its name.", { minLength: 1 }),
          value: text("Its value: 64512:100, or 64512:100:200.", { pattern: COMMUNITY }),
        },
        ["name", "value"],
      ),
    ),
    prefixAdvertisements: list(
      "Communities that announced routes carry, by prefix.",
      object(
        "One prefix.",
        {
          cidr: text("Announced routes inside of it carry the communities.", { minLength: 3, maxLength: 49 }),
          communities: list("Names of communities above, or values.", text("A name or a value.", { minLength: 1 })),
        },
        ["cidr", "communities"],
      ),
    ),
    nodeMeshPassword: bgpPassword("Password of the sessions between nodes."),
    nodeMeshMaxRestartTime: duration(
      "How long other nodes keep the routes of one that restarts its BGP (default: 120s).",
    ),
    ignoredInterfaces: setOf(
      "Interfaces that next hops are never looked for at; * stands for any text.",
      text("A name."),
    ),
  }),
  columns: [
    { name: "AS", type: "integer", jsonPath: ".spec.asNumber", description: "AS number of nodes" },
    {
      name: "Mesh",
      type: "boolean",
      jsonPath: ".spec.nodeToNodeMeshEnabled",
      description: "Whether nodes have sessions with each other",
    },
    AGE,
  ],
});

export type BGPConfiguration = ObjectOf<typeof bgpConfiguration>;
