import { PORT_PROTOCOLS } from "../../api/tables/protocols.ts";
import { type Address, parseAddress } from "../../kit/ip.ts";
import type { DataplaneModel, IcmpMatch, IpSet, Net, Packet, PortRange, RuleMatch } from "../model.ts";
import { NetTable } from "../nets.ts";
import { orMake } from "../or-make.ts";

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

/** Whether every criterion of the rule holds. A set that is not in the model is empty. */
export function matchesRule(rule: RuleMatch, packet: ReadPacket, sets: DataplaneModel["ipSets"]): boolean {
  if (rule.ipVersion !== undefined && rule.ipVersion !== packet.ipVersion) return false;
  if (rule.protocol !== undefined && rule.protocol !== packet.protocol) return false;
  if (rule.notProtocol !== undefined && rule.notProtocol === packet.protocol) return false;
  const { source, destination } = packet;
  return (
    matchesNets(rule.srcNets, rule.notSrcNets, source.address) &&
    matchesNets(rule.dstNets, rule.notDstNets, destination.address) &&
    matchesSets(rule.srcSets, rule.notSrcSets, source.address, sets) &&
    matchesSets(rule.dstSets, rule.notDstSets, destination.address, sets) &&
    matchesPorts(rule.srcPorts, rule.srcNamedPortSets, source, packet.protocol, sets) &&
    matchesPorts(rule.dstPorts, rule.dstNamedPortSets, destination, packet.protocol, sets) &&
    !hasPort(rule.notSrcPorts, rule.notSrcNamedPortSets, source, packet.protocol, sets) &&
    !hasPort(rule.notDstPorts, rule.notDstNamedPortSets, destination, packet.protocol, sets) &&
    (rule.icmp === undefined || isIcmp(rule.icmp, packet)) &&
    (rule.notIcmp === undefined || !isIcmp(rule.notIcmp, packet))
  );
}

function matchesNets(nets: Net[] | undefined, notNets: Net[] | undefined, address: Address): boolean {
  if (nets && !tableOf(nets, nets).find(address)) return false;
  return !(notNets && tableOf(notNets, notNets).find(address));
}

type Sets = DataplaneModel["ipSets"];

function matchesSets(ids: string[] | undefined, notIds: string[] | undefined, address: Address, sets: Sets): boolean {
  const holds = (id: string) => {
    const set = sets.get(id);
    return set !== undefined && tableOf(set, set.members).find(address) !== undefined;
  };
  return (ids ?? []).every(holds) && !(notIds ?? []).some(holds);
}

function matchesPorts(
  ranges: PortRange[] | undefined,
  named: string[] | undefined,
  side: Side,
  protocol: number,
  sets: Sets,
): boolean {
  if (!ranges && !named) return true;
  return hasPort(ranges, named, side, protocol, sets);
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
