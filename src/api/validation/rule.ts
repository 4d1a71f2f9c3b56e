import { parseAddress, parseCidr, V4 } from "../../kit/ip.ts";
import type { PolicyRule, RuleEntity } from "../resources/policy-rule.ts";
import { protocolNumber } from "../tables/protocols.ts";
import { type Problem, reporters } from "./problem.ts";
import { brief, labelKeyProblems, netProblems, selectorProblems } from "./values.ts";

export const RULE_PROBLEMS = {
  RULE_PROTOCOL_UNKNOWN: {
    title: "A protocol that does not exist",
    why: "The rule could never match.",
    fix: "Use TCP, UDP, ICMP, ICMPv6, SCTP, UDPLite, or a number from 1 to 255.",
    rule: "protocol is one of the known names or a number.",
  },
  RULE_PORTS_NEED_PROTOCOL: {
    title: "Ports without a protocol that has ports",
    why: "Only TCP, UDP and SCTP have ports; without one of them it is unclear what the rule matches.",
    fix: "Set protocol to TCP, UDP or SCTP.",
    rule: "Ports need protocol TCP, UDP or SCTP.",
  },
  RULE_PORT_MALFORMED: {
    title: "Not a port, a range or a port's name",
    why: "The rule could never match.",
    fix: "Write a port from 1 to 65535, a range such as 8000:9000, or a name.",
    rule: "Ports are numbers, ranges or names.",
  },
  RULE_ICMP_PROTOCOL: {
    title: "ICMP fields without an ICMP protocol",
    why: "Only ICMP messages have a type and a code.",
    fix: "Set protocol to ICMP or ICMPv6.",
    rule: "icmp needs protocol ICMP or ICMPv6.",
  },
  RULE_ICMP_CODE: {
    title: "An ICMP code without a type",
    why: "A code means something only for its type.",
    fix: "Set the type too.",
    rule: "An ICMP code needs a type.",
  },
  RULE_FAMILY_MIXED: {
    title: "IPv4 and IPv6 in one rule",
    why: "A packet is one or the other, so the rule could never match.",
    fix: "Write one rule for each family.",
    rule: "The prefixes, ipVersion and protocol of a rule belong to one family.",
  },
  RULE_NOT_NETS_EVERYTHING: {
    title: "A rule leaves out every address",
    why: "Nothing is outside 0.0.0.0/0 or ::/0, so the rule could never match.",
    fix: "Leave out the smaller prefix that was meant, or remove notNets.",
    rule: "notNets does not hold a prefix of length 0.",
  },
  RULE_HTTP: {
    title: "An HTTP match where none is possible",
    why: "HTTP is read by the sidecar of the pod that receives, and only to let requests in.",
    fix: "Use http only in ingress rules with action Allow and protocol TCP, each path exact or prefix.",
    rule: "http: action Allow, ingress only, TCP; each path is exactly one of exact and prefix.",
  },
  RULE_SERVICE_MATCH: {
    title: "A service match where none is possible",
    why: "A Service already has addresses and ports, and it can be only the other side of the traffic.",
    fix: "Use services alone, as the source of ingress or the destination of egress rules.",
    rule: "services excludes ports, nets and selectors; in global policy it needs a namespace.",
  },
} as const;

const at = reporters(RULE_PROBLEMS);

const ICMP = 1;
const ICMPV6 = 58;
const TCP = 6;
const WITH_PORTS = [6, 17, 132];

interface Place {
  path: string;
  direction: "ingress" | "egress";
  /** Whether the policy is in a namespace; a global one must name the namespace of a service. */
  namespaced: boolean;
}

export function ruleProblems(rule: PolicyRule, place: Place): Problem[] {
  const { path } = place;
  return [
    ...protocolProblems(rule.protocol, `${path}.protocol`),
    ...protocolProblems(rule.notProtocol, `${path}.notProtocol`),
    ...icmpProblems(rule, path),
    ...(["source", "destination"] as const).flatMap((side) => entityProblems(rule, side, place)),
    ...familyProblems(rule, path),
    ...httpProblems(rule, place),
    ...Object.keys(rule.metadata?.annotations ?? {}).flatMap((key) =>
      labelKeyProblems(key, `${path}.metadata.annotations`),
    ),
  ];
}

function protocolProblems(protocol: string | number | undefined, path: string): Problem[] {
  if (protocol === undefined || protocolNumber(protocol) !== undefined) return [];
  return [at.RULE_PROTOCOL_UNKNOWN(path, `"${brief(String(protocol))}" is not a protocol.`)];
}

function icmpProblems(rule: PolicyRule, path: string): Problem[] {
  const protocol = protocolNumber(rule.protocol);
  return (["icmp", "notICMP"] as const).flatMap((field) => {
    const match = rule[field];
    if (!match) return [];
    const icmp = protocol === ICMP || protocol === ICMPV6;
    return [
      ...(icmp ? [] : [at.RULE_ICMP_PROTOCOL(`${path}.${field}`, `${field} needs protocol ICMP or ICMPv6.`)]),
      ...(match.code !== undefined && match.type === undefined
        ? [at.RULE_ICMP_CODE(`${path}.${field}.code`, "An ICMP code needs a type.")]
        : []),
    ];
  });
}

function entityProblems(rule: PolicyRule, side: "source" | "destination", place: Place): Problem[] {
  const entity = rule[side];
  if (!entity) return [];
  const path = `${place.path}.${side}`;
  return [
    ...netProblems(entity.nets, `${path}.nets`, true),
    ...netProblems(entity.notNets, `${path}.notNets`, true),
    ...(entity.notNets ?? []).flatMap((net, index) =>
      parseCidr(net)?.length === 0
        ? [at.RULE_NOT_NETS_EVERYTHING(`${path}.notNets[${index}]`, `${net} leaves out every address.`)]
        : [],
    ),
    ...portsProblems(rule, entity, path),
    ...selectorProblems(entity.selector, `${path}.selector`),
    ...selectorProblems(entity.notSelector, `${path}.notSelector`),
    ...selectorProblems(entity.namespaceSelector, `${path}.namespaceSelector`, true),
    ...selectorProblems(entity.serviceAccounts?.selector, `${path}.serviceAccounts.selector`),
    ...serviceProblems(entity, side, place),
  ];
}

function portsProblems(rule: PolicyRule, entity: RuleEntity, path: string): Problem[] {
  return (["ports", "notPorts"] as const).flatMap((field) => {
    const ports = entity[field] ?? [];
    if (ports.length === 0) return [];
    const protocol = protocolNumber(rule.protocol);
    const hasPorts = protocol !== undefined && WITH_PORTS.includes(protocol);
    return [
      ...(hasPorts
        ? []
        : [at.RULE_PORTS_NEED_PROTOCOL(`${path}.${field}`, `${field} needs protocol TCP, UDP or SCTP.`)]),
      ...ports.flatMap((port, index) =>
        isPort(port)
          ? []
          : [
              at.RULE_PORT_MALFORMED(
                `${path}.${field}[${index}]`,
                `"${brief(String(port))}" is not a port, a range or a name.`,
              ),
            ],
      ),
    ];
  });
}

function isPort(port: string | number): boolean {
  const match = /^(\d+)(?::(\d+))?$/.exec(String(port));
  if (!match) return /^[a-zA-Z0-9_.-]{1,128}$/.test(String(port));
  const [first, last] = [Number(match[1]), Number(match[2] ?? match[1])];
  return first >= 1 && last <= 65535 && first <= last;
}

/** Everything in a rule that belongs to one family must belong to the same. */
function familyProblems(rule: PolicyRule, path: string): Problem[] {
  const nets = [rule.source, rule.destination].flatMap((entity) => [
    ...(entity?.nets ?? []),
    ...(entity?.notNets ?? []),
  ]);
  const families = new Set<4 | 6>();
  for (const net of nets) {
    const family = (parseCidr(net) ?? parseAddress(net))?.family;
    if (family) families.add(family === V4 ? 4 : 6);
  }
  if (rule.ipVersion !== undefined) families.add(rule.ipVersion);
  const protocol = protocolNumber(rule.protocol);
  if (protocol === ICMP) families.add(4);
  if (protocol === ICMPV6) families.add(6);
  return families.has(4) && families.has(6) ? [at.RULE_FAMILY_MIXED(path, "The rule names both IPv4 and IPv6.")] : [];
}

function httpProblems(rule: PolicyRule, place: Place): Problem[] {
  if (!rule.http) return [];
  const path = `${place.path}.http`;
  const tcp = rule.protocol === undefined || protocolNumber(rule.protocol) === TCP;
  const odd = (rule.http.paths ?? []).flatMap((match, index) =>
    (match.exact === undefined) === (match.prefix === undefined)
      ? [at.RULE_HTTP(`${path}.paths[${index}]`, "A path is exactly one of exact and prefix.")]
      : [],
  );
  return [
    ...(rule.action === "Allow" ? [] : [at.RULE_HTTP(path, `http needs action Allow, not ${rule.action}.`)]),
    ...(place.direction === "ingress" ? [] : [at.RULE_HTTP(path, "http is for ingress rules only.")]),
    ...(tcp ? [] : [at.RULE_HTTP(path, `http needs protocol TCP, not ${rule.protocol}.`)]),
    ...odd,
  ];
}

function serviceProblems(entity: RuleEntity, side: "source" | "destination", place: Place): Problem[] {
  const { services } = entity;
  if (!services) return [];
  const path = `${place.path}.${side}.services`;
  const egress = place.direction === "egress";
  const rightSide = egress ? side === "destination" : side === "source";
  // A service's ports are its own where traffic goes to it; where traffic comes from it they are the pods' own.
  const excluded = [
    "nets",
    "notNets",
    "selector",
    "notSelector",
    "namespaceSelector",
    "serviceAccounts",
    ...(egress ? ["ports", "notPorts"] : []),
  ];
  const beside = excluded.filter((field) => isSet(entity[field as keyof RuleEntity]));
  return [
    ...(rightSide
      ? []
      : [at.RULE_SERVICE_MATCH(path, `services cannot be the ${side} of an ${place.direction} rule.`)]),
    ...(services.name ? [] : [at.RULE_SERVICE_MATCH(`${path}.name`, "The service must be named.")]),
    ...(place.namespaced || services.namespace
      ? []
      : [at.RULE_SERVICE_MATCH(`${path}.namespace`, "A global policy must name the service's namespace.")]),
    ...(beside.length === 0 ? [] : [at.RULE_SERVICE_MATCH(path, `services cannot be used with ${beside.join(", ")}.`)]),
  ];
}

function isSet(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== "";
}
