import { choice, listByKey, object, port, setOf, text } from "./describe.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";

export const hostEndpoint = defineResource({
  noun: "hostEndpoint",
  api: "v3",
  namespaced: false,
  description: "An interface of a node that policy applies to; names ending in -auto-hep are made by the controllers.",
  spec: object(
    "Which interface, and what it carries.",
    {
      node: text("Name of the node.", { minLength: 1 }),
      interfaceName: text("The interface, or * for all of the node; needed where no addresses are given."),
      expectedIPs: setOf("Addresses of the interface; needed where no name is given.", text("One address.")),
      profiles: setOf("Profiles that decide where no policy does.", text("Name of one profile.")),
      ports: listByKey(
        "Names for ports, used by policy.",
        ["name", "port", "protocol"],
        object(
          "One named port.",
          {
            name: text("The name.", { pattern: "^[a-zA-Z0-9_.-]{1,128}$" }),
            port: port("The port."),
            protocol: choice("Its protocol.", ["TCP", "UDP", "SCTP"]),
          },
          ["name", "port", "protocol"],
        ),
      ),
    },
    ["node"],
  ),
  columns: [
    { name: "Node", type: "string", jsonPath: ".spec.node", description: "Node of the interface" },
    { name: "Interface", type: "string", jsonPath: ".spec.interfaceName", description: "The interface" },
    AGE,
    { name: "IPs", type: "string", jsonPath: ".spec.expectedIPs", description: "Its addresses", priority: 1 },
    { name: "Profiles", type: "string", jsonPath: ".spec.profiles", description: "Its profiles", priority: 1 },
  ],
});

export type HostEndpoint = ObjectOf<typeof hostEndpoint>;
