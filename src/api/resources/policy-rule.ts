import type { FromSchema } from "../schema/from-schema.ts";
import { choice, integer, intOrString, list, mapOf, object, setOf, text } from "./describe.ts";

const protocol = (what: string) =>
  intOrString(`${what}: TCP, UDP, ICMP, ICMPv6, SCTP, UDPLite, or a number from 1 to 255.`);

const icmp = (description: string) =>
  object(description, {
    type: integer("ICMP type.", { minimum: 0, maximum: 254 }),
    code: integer("ICMP code; needs a type.", { minimum: 0, maximum: 255 }),
  });

const ports = (description: string) => list(description, intOrString("A port, a range such as 8000:9000, or a name."));

const entity = (which: string) =>
  object(`What the rule says of the ${which}.`, {
    nets: setOf(`The ${which} is in one of these prefixes.`, text("One prefix.")),
    notNets: setOf(`The ${which} is in none of these prefixes.`, text("One prefix.")),
    selector: text(`The ${which}'s labels match this selector.`),
    notSelector: text(`The ${which}'s labels do not match this selector.`),
    namespaceSelector: text(`The ${which}'s namespace matches this selector; global() is what has no namespace.`),
    ports: ports(`The ${which}'s port is one of these.`),
    notPorts: ports(`The ${which}'s port is none of these.`),
    serviceAccounts: object(`The ${which} runs under a service account.`, {
      names: setOf("One of these service accounts.", text("Name of one.")),
      selector: text("A service account whose labels match."),
    }),
    services: object(`The ${which} is a backend of a service.`, {
      name: text("Name of the service."),
      namespace: text("Namespace of the service; the policy's own where it is left out."),
    }),
  });

export const policyRule = object(
  "One rule: what it matches, and what then happens.",
  {
    action: choice("What happens to matching traffic.", ["Allow", "Deny", "Log", "Pass"]),
    ipVersion: { type: "integer", description: "Only this IP version.", enum: [4, 6] } as const,
    protocol: protocol("The protocol is this one"),
    notProtocol: protocol("The protocol is not this one"),
    icmp: icmp("The ICMP message is this one; needs protocol ICMP or ICMPv6."),
    notICMP: icmp("The ICMP message is not this one."),
    source: entity("source"),
    destination: entity("destination"),
    http: object("The HTTP request is one of these; only where a sidecar enforces the rule.", {
      methods: setOf("The method is one of these.", text("One method.")),
      paths: list(
        "The path is one of these.",
        object("One path; exactly one of the two.", {
          exact: text("The whole path.", { pattern: "^/[^?# ]*$" }),
          prefix: text("How the path begins.", { pattern: "^/[^?# ]*$" }),
        }),
      ),
    }),
    metadata: object("Notes that travel with the rule.", {
      annotations: mapOf("The notes.", text("One note.")),
    }),
  },
  ["action"],
);

export type PolicyRule = FromSchema<typeof policyRule>;
export type RuleEntity = NonNullable<PolicyRule["source"]>;
