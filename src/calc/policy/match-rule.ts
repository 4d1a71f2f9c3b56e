import { PORT_PROTOCOLS } from "../../api/tables/protocols.ts";
import { type Address, parseAddress } from "../../kit/ip.ts";
import type { DataplaneModel, IcmpMatch, IpSet, Net, Packet, PortRange, RuleMatch } from "../model.ts";
import { NetTable } from "../nets.ts";
import { orMake } from "../or-make.ts";
import type { Criterion, HandledCriteria } from "./criteria.ts";

/** A packet read once, so that rules only compare. */
export interface ReadPacket {
  ipVersion: 4 | 6;
  protocol: number;
  source: Side;
  destination: Side;
  icmp: { type: number; code: number } | undefined;
}

interface Side {
  address: Address;
  port: number;
}

const ICMP = [1, 58];

/** `original`: with the destination it had before a service was translated. Undefined for addresses that are none. */
export function readPacket(packet: Packet, original = false): ReadPacket | undefined {
  const to = original ? (packet.originalDestination ?? packet.destination) : packet.destination;
  const toPort = original ? (packet.originalDestinationPort ?? packet.destinationPort) : packet.destinationPort;
  const [source, destination] = [parseAddress(packet.source), parseAddress(to)];
  if (!source || !destination) return undefined;
  const isIcmp = ICMP.includes(packet.protocol);
  return {
    ipVersion: packet.ipVersion,
    protocol: packet.protocol,
    source: { address: source, port: packet.sourcePort ?? 0 },
    destination: { address: destination, port: toPort ?? 0 },
    icmp: isIcmp ? { type: packet.icmpType ?? 0, code: packet.icmpCode ?? 0 } : undefined,
  };
}

type Matches = (rule: RuleMatch, packet: ReadPacket, sets: Sets) => boolean;

const sourcePorts: Matches = (rule, { source, protocol }, sets) =>
  hasPort(rule.srcPorts, rule.srcNamedPortSets, source, protocol, sets);
const destinationPorts: Matches = (rule, { destination, protocol }, sets) =>
  hasPort(rule.dstPorts, rule.dstNamedPortSets, destination, protocol, sets);

/** What each criterion means, where a rule has it. Numeric and named ports of one side are one "or", so both call the same. */
const CRITERIA: { readonly [K in Criterion]: Matches } = {
  ipVersion: (rule, packet) => rule.ipVersion === packet.ipVersion,
  protocol: (rule, packet) => rule.protocol === packet.protocol,
  notProtocol: (rule, packet) => rule.notProtocol !== packet.protocol,
  srcNets: ({ srcNets }, { source }) => isInNets(srcNets, source.address),
  notSrcNets: ({ notSrcNets }, { source }) => !isInNets(notSrcNets, source.address),
  dstNets: ({ dstNets }, { destination }) => isInNets(dstNets, destination.address),
  notDstNets: ({ notDstNets }, { destination }) => !isInNets(notDstNets, destination.address),
  srcSets: ({ srcSets = [] }, { source }, sets) => srcSets.every((id) => isInSet(id, source.address, sets)),
  notSrcSets: ({ notSrcSets = [] }, { source }, sets) => !notSrcSets.some((id) => isInSet(id, source.address, sets)),
  dstSets: ({ dstSets = [] }, { destination }, sets) => dstSets.every((id) => isInSet(id, destination.address, sets)),
  notDstSets: ({ notDstSets = [] }, { destination }, sets) =>
    !notDstSets.some((id) => isInSet(id, destination.address, sets)),
  srcPorts: sourcePorts,
  srcNamedPortSets: sourcePorts,
  dstPorts: destinationPorts,
  dstNamedPortSets: destinationPorts,
  notSrcPorts: ({ notSrcPorts }, { source, protocol }, sets) =>
    !hasPort(notSrcPorts, undefined, source, protocol, sets),
  notSrcNamedPortSets: ({ notSrcNamedPortSets }, { source, protocol }, sets) =>
    !hasPort(undefined, notSrcNamedPortSets, source, protocol, sets),
  notDstPorts: ({ notDstPorts }, { destination, protocol }, sets) =>
    !hasPort(notDstPorts, undefined, destination, protocol, sets),
  notDstNamedPortSets: ({ notDstNamedPortSets }, { destination, protocol }, sets) =>
    !hasPort(undefined, notDstNamedPortSets, destination, protocol, sets),
  icmp: ({ icmp }, packet) => icmp !== undefined && isIcmp(icmp, packet),
  notIcmp: ({ notIcmp }, packet) => notIcmp === undefined || !isIcmp(notIcmp, packet),
};
const ALL_CRITERIA = Object.entries(CRITERIA) as [Criterion, Matches][];

/** For `enforceable`. */
export const MATCHED_CRITERIA = Object.fromEntries(ALL_CRITERIA.map(([name]) => [name, true])) as HandledCriteria;

/** Whether every criterion of the rule holds. A set that is not in the model is empty. */
export function matchesRule(rule: RuleMatch, packet: ReadPacket, sets: Sets): boolean {
  return ALL_CRITERIA.every(([name, holds]) => rule[name] === undefined || holds(rule, packet, sets));
}

/** As people see them: numbers and names of the ports of one side are one criterion. */
const ONE_CRITERION: Readonly<Partial<Record<Criterion, Criterion>>> = {
  srcNamedPortSets: "srcPorts",
  notSrcNamedPortSets: "notSrcPorts",
  dstNamedPortSets: "dstPorts",
  notDstNamedPortSets: "notDstPorts",
};

/** Which criteria of the rule do not hold; none: it matches. */
export function failedCriteria(rule: RuleMatch, packet: ReadPacket, sets: Sets): Criterion[] {
  const failed = ALL_CRITERIA.filter(([name, holds]) => rule[name] !== undefined && !holds(rule, packet, sets));
  return [...new Set(failed.map(([name]) => ONE_CRITERION[name] ?? name))];
}

function isInNets(nets: Net[] | undefined, address: Address): boolean {
  return nets !== undefined && tableOf(nets, nets).find(address) !== undefined;
}

type Sets = DataplaneModel["ipSets"];

function isInSet(id: string, address: Address, sets: Sets): boolean {
  const set = sets.get(id);
  return set !== undefined && tableOf(set, set.members).find(address) !== undefined;
}

function hasPort(
  ranges: PortRange[] | undefined,
  named: string[] | undefined,
  { address, port }: Side,
  protocol: number,
  sets: Sets,
): boolean {
  if ((ranges ?? []).some(([first, last]) => port >= first && port <= last)) return true;
  const name = PORT_PROTOCOLS.get(protocol);
  if (!named || name === undefined) return false;
  return named.some((id) => {
    const set = sets.get(id);
    return set !== undefined && portTableOf(set).get(`${name}:${port}`)?.find(address) !== undefined;
  });
}

function isIcmp(match: IcmpMatch, { icmp }: ReadPacket): boolean {
  if (!icmp) return false;
  return (
    (match.type === undefined || match.type === icmp.type) && (match.code === undefined || match.code === icmp.code)
  );
}

/** Values of the model never change, so what was arranged for one is good for as long as it lives. */
const tables = new WeakMap<object, NetTable>();
const portTables = new WeakMap<object, Map<string, NetTable>>();

function tableOf(owner: object, nets: readonly Net[]): NetTable {
  let table = tables.get(owner);
  if (!table) {
    table = new NetTable();
    for (const net of nets) table.add(net, true);
    tables.set(owner, table);
  }
  return table;
}

/** By `tcp:80`, the nets that have it. */
function portTableOf(set: IpSet): Map<string, NetTable> {
  let byPort = portTables.get(set);
  if (!byPort) {
    byPort = new Map();
    for (const member of set.members) {
      const comma = member.indexOf(",");
      const port = member.slice(comma + 1);
      orMake(byPort, port, () => new NetTable()).add(member.slice(0, comma), true);
    }
    portTables.set(set, byPort);
  }
  return byPort;
}
