import type { PolicyRule, RuleEntity } from "../../../api/resources/policy-rule.ts";
import { hasGlobal, matchesExpression, parseSelectorExpression } from "../../../api/schema/selector-expression.ts";
import { type Address, contains, parseCidr } from "../../../kit/ip.ts";

/** A node as rules see it: its addresses, and the labels of its endpoint. */
export interface Host {
  addresses: readonly Address[];
  labels: Readonly<Record<string, string>>;
}

/** A packet between a node and another, or an unknown peer. */
export interface HostPacket {
  direction: "Ingress" | "Egress";
  protocol: "TCP" | "UDP";
  /** The destination port; the source port is unknown. */
  port: number;
  self: Host;
  peer: Host | "anybody";
}

/** `unknown` where it depends on what is not known here. */
export type Match = "yes" | "no" | "unknown";

const NUMBERS: Readonly<Record<string, number>> = { icmp: 1, tcp: 6, udp: 17, icmpv6: 58, sctp: 132, udplite: 136 };

export function matchesRule(rule: PolicyRule, packet: HostPacket): Match {
  const [source, destination] =
    packet.direction === "Ingress" ? [packet.peer, packet.self] : [packet.self, packet.peer];
  return all([
    protocolMatch(rule.protocol, packet.protocol),
    not(rule.notProtocol === undefined ? "no" : protocolMatch(rule.notProtocol, packet.protocol)),
    rule.icmp === undefined ? "yes" : "no",
    familyMatch(rule.ipVersion, packet),
    rule.http === undefined ? "yes" : "unknown",
    entityMatch(rule.source, source, undefined),
    entityMatch(rule.destination, destination, packet.port),
  ]);
}

function protocolMatch(wanted: string | number | undefined, has: "TCP" | "UDP"): Match {
  if (wanted === undefined) return "yes";
  const number = typeof wanted === "number" ? wanted : (NUMBERS[wanted.toLowerCase()] ?? Number(wanted));
  return number === NUMBERS[has.toLowerCase()] ? "yes" : "no";
}

function familyMatch(version: 4 | 6 | undefined, { self, peer }: HostPacket): Match {
  if (version === undefined) return "yes";
  const families = new Set((peer === "anybody" ? self : peer).addresses.map(({ family }) => family.name));
  if (!families.has(version === 4 ? "IPv4" : "IPv6")) return "no";
  return families.size === 1 ? "yes" : "unknown";
}

function entityMatch(entity: RuleEntity | undefined, host: Host | "anybody", port: number | undefined): Match {
  if (entity === undefined) return "yes";
  return all([
    netsMatch(entity.nets, host),
    not(entity.notNets === undefined ? "no" : netsMatch(entity.notNets, host)),
    labelsMatch(entity.selector, host),
    not(entity.notSelector === undefined ? "no" : labelsMatch(entity.notSelector, host)),
    namespaceMatch(entity.namespaceSelector, host),
    portsMatch(entity.ports, port),
    not(entity.notPorts === undefined ? "no" : portsMatch(entity.notPorts, port)),
    // A node runs under no service account.
    entity.serviceAccounts === undefined ? "yes" : host === "anybody" ? "unknown" : "no",
    entity.services === undefined ? "yes" : "unknown",
  ]);
}

function netsMatch(nets: readonly string[] | undefined, host: Host | "anybody"): Match {
  if (nets === undefined || nets.length === 0) return "yes";
  const prefixes = nets.flatMap((net) => parseCidr(net.includes("/") ? net : wholeOf(net)) ?? []);
  if (host === "anybody") return prefixes.some(({ length }) => length === 0) ? "yes" : "unknown";
  const inside = host.addresses.map((address) => prefixes.some((prefix) => contains(prefix, address)));
  return inside.every(Boolean) ? "yes" : inside.some(Boolean) ? "unknown" : "no";
}

function wholeOf(address: string): string {
  return `${address}/${address.includes(":") ? 128 : 32}`;
}

function labelsMatch(selector: string | undefined, host: Host | "anybody"): Match {
  if (!selector?.trim()) return "yes";
  const parsed = parseSelectorExpression(selector);
  if ("problem" in parsed) return "no";
  if (host === "anybody") return "unknown";
  return matchesExpression(parsed.expression, host.labels) ? "yes" : "no";
}

function namespaceMatch(selector: string | undefined, host: Host | "anybody"): Match {
  if (!selector?.trim()) return "yes";
  const parsed = parseSelectorExpression(selector);
  if ("problem" in parsed || !hasGlobal(parsed.expression)) return host === "anybody" ? "unknown" : "no";
  return "yes";
}

/** Names of ports belong to endpoints that have them; automatic ones have none. */
function portsMatch(ports: readonly (string | number)[] | undefined, port: number | undefined): Match {
  if (ports === undefined || ports.length === 0) return "yes";
  if (port === undefined) return "unknown";
  return ports.some((one) => portIn(one, port)) ? "yes" : "no";
}

function portIn(one: string | number, port: number): boolean {
  const range = /^(\d+):(\d+)$/.exec(String(one));
  return range ? port >= Number(range[1]) && port <= Number(range[2]) : Number(one) === port;
}

function all(matches: readonly Match[]): Match {
  if (matches.includes("no")) return "no";
  return matches.includes("unknown") ? "unknown" : "yes";
}

function not(match: Match): Match {
  return match === "yes" ? "no" : match === "no" ? "yes" : "unknown";
}
