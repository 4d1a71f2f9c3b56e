import { asNumber, bgpPassword } from "./bgp-configuration.ts";
import { choice, duration, flag, integer, list, object, text } from "./describe.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";

export const bgpPeer = defineResource({
  noun: "bgpPeer",
  api: "v3",
  namespaced: false,
  description: "Sessions of nodes with a router, or with other nodes that reflect routes.",
  spec: object("The sessions.", {
    node: text("The one node that has the session; without node and nodeSelector every node has it.", { minLength: 1 }),
    nodeSelector: text("Which nodes have the session, by their labels.", { minLength: 1 }),
    peerIP: text("Address of the router, or ADDRESS:PORT; an IPv6 address with a port is in brackets.", {
      minLength: 2,
      maxLength: 53,
    }),
    asNumber: asNumber("AS number of the router; needed with peerIP."),
    peerSelector: text("Which nodes are the peers, by their labels: instead of peerIP and asNumber.", { minLength: 1 }),
    localASNumber: asNumber("AS number of the nodes in these sessions, instead of their own."),
    password: bgpPassword("Password of the session."),
    sourceAddress: choice(
      "UseNodeIP: the session has the node's address. None: the address the kernel chooses (default: UseNodeIP).",
      ["UseNodeIP", "None"],
    ),
    keepOriginalNextHop: flag("The same as nextHopMode Keep."),
    nextHopMode: choice(
      "Next hop of announced routes: Self is the node, Keep the one they came with, Auto what the protocol prescribes (default: Auto).",
      ["Auto", "Self", "Keep"],
    ),
    maxRestartTime: duration("How long the peer keeps the routes of a node that restarts its BGP (default: 120s)."),
    numAllowedLocalASNumbers: integer("How often the node's AS number may be in the path of a route that it accepts.", {
      minimum: 0,
      maximum: 255,
    }),
    ttlSecurity: integer("Greatest number of hops to the peer; packets from further away are dropped.", {
      minimum: 1,
      maximum: 254,
    }),
    reachableBy: text("Address of the gateway that leads to the peer: the node has a route to peerIP by it.", {
      minLength: 2,
      maxLength: 45,
    }),
    filters: list(
      "Names of BGPFilters, in order; the first rule that matches decides.",
      text("A name.", { minLength: 1 }),
    ),
  }),
  columns: [
    { name: "Peer", type: "string", jsonPath: ".spec.peerIP", description: "Address of the router" },
    { name: "AS", type: "integer", jsonPath: ".spec.asNumber", description: "AS number of the router" },
    { name: "Node", type: "string", jsonPath: ".spec.node", description: "The one node" },
    { name: "Nodes", type: "string", jsonPath: ".spec.nodeSelector", description: "Which nodes" },
    { name: "Peers", type: "string", jsonPath: ".spec.peerSelector", description: "Which nodes are the peers" },
    AGE,
  ],
});

export type BGPPeer = ObjectOf<typeof bgpPeer>;
