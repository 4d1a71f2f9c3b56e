import { choice, integer, list, object, setOf, text } from "./describe.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";

const daemon = object("BIRD, which carries both families.", {
  state: choice("Whether it answers at its control socket.", ["Ready", "NotReady"]),
  version: text("Its version."),
  routerID: text("Its router id."),
  lastBootTime: text("When it started, in its words."),
  lastReconfigurationTime: text("When it read its configuration last, in its words."),
});

const peers = (family: string) =>
  list(
    `Sessions over ${family}.`,
    object("One session.", {
      peerIP: text("Address of the peer."),
      type: choice("NodeMesh: of the full mesh. NodePeer: of a BGPPeer for some nodes. GlobalPeer: of one for all.", [
        ...["NodeMesh", "NodePeer", "GlobalPeer"],
      ] as const),
      state: choice("The protocol's state; Unknown while BIRD does not say.", [
        ...["Idle", "Connect", "Active", "OpenSent", "OpenConfirm", "Established", "Close", "Unknown"],
      ] as const),
      since: text("Since when, in the words of BIRD."),
      info: text("Why it is not established, as far as BIRD knows."),
    }),
  );

const count = (description: string) => integer(description, { minimum: 0 });

export const nodeStatus = defineResource({
  noun: "nodeStatus",
  api: "v3",
  namespaced: false,
  description: "Asks the agent of one node for the state of BGP there. It answers only where BGP is enabled.",
  spec: object(
    "What is asked for.",
    {
      node: text("Name of the node.", { minLength: 1 }),
      classes: setOf(
        "What to report: Agent is the daemon, BGP its sessions. Routes is not carried: run vendor node show routes on the node.",
        choice("A class.", ["Agent", "BGP"]),
      ),
      updatePeriodSeconds: integer("How often the status is written; 0 is once (default: 10).", {
        minimum: 0,
        maximum: 86_400,
      }),
    },
    ["node", "classes"],
  ),
  status: object("What BIRD said when it was asked last.", {
    lastUpdated: text("When the status was written.", { format: "date-time" }),
    agent: object("The daemon; with the class Agent.", { birdV4: daemon, birdV6: daemon }),
    bgp: object("The sessions; with the class BGP.", {
      numberEstablishedV4: count("Established sessions over IPv4."),
      numberNotEstablishedV4: count("Sessions over IPv4 that are not established."),
      peersV4: peers("IPv4"),
      numberEstablishedV6: count("Established sessions over IPv6."),
      numberNotEstablishedV6: count("Sessions over IPv6 that are not established."),
      peersV6: peers("IPv6"),
    }),
  }),
  columns: [
    { name: "Node", type: "string", jsonPath: ".spec.node", description: "The node" },
    {
      ...{ name: "Established", type: "integer", jsonPath: ".status.bgp.numberEstablishedV4" },
      description: "Established sessions over IPv4",
    },
    {
      ...{ name: "Updated", type: "date", jsonPath: ".status.lastUpdated" },
      description: "Time since the status was written",
    },
    AGE,
  ],
});

export type NodeStatus = ObjectOf<typeof nodeStatus>;
