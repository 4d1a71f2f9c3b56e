/** Flows of connection tracking as bytes. Pure. */

import {
  AF_INET,
  type Attributes,
  addressBytes,
  addressText,
  attribute,
  NESTED,
  type NetlinkMessage,
  nested,
  readAttributes,
  reader,
  u8,
  u16be,
} from "../netlink/netlink-message.ts";
import { type ConntrackEntry, type ConntrackTuple, TCP_STATES } from "./conntrack-port.ts";

export const ATTR = {
  original: 1,
  reply: 2,
  status: 3,
  protocolInfo: 4,
  sourceNat: 6,
  timeout: 7,
  mark: 8,
  countersOriginal: 9,
  countersReply: 10,
  destinationNat: 13,
  markMask: 21,
} as const;
const TUPLE = { addresses: 1, protocol: 2 } as const;
const ADDRESSES = { v4Source: 1, v4Destination: 2, v6Source: 3, v6Destination: 4 } as const;
const PROTO = {
  number: 1,
  sourcePort: 2,
  destinationPort: 3,
  icmpId: 4,
  icmpType: 5,
  icmpCode: 6,
  icmp6Id: 7,
  icmp6Type: 8,
  icmp6Code: 9,
} as const;
const STATUS = { seenReply: 0x02, assured: 0x04, sourceNat: 0x10, destinationNat: 0x20 } as const;
const ICMP = 1;
const ICMP6 = 58;
/** What an ICMP question is answered by: echo, timestamp, information, address mask. */
const ICMP_ANSWERS = new Map([
  [8, 0],
  [0, 8],
  [13, 14],
  [14, 13],
  [128, 129],
  [129, 128],
]);
const EMPTY = Buffer.alloc(0);

export function inverse(tuple: ConntrackTuple): ConntrackTuple {
  return {
    protocol: tuple.protocol,
    source: tuple.destination,
    destination: tuple.source,
    sourcePort: tuple.destinationPort,
    destinationPort: tuple.sourcePort,
    ...(tuple.icmp ? { icmp: { ...tuple.icmp, type: ICMP_ANSWERS.get(tuple.icmp.type) ?? tuple.icmp.type } } : {}),
  };
}

export function encodeTuple(type: number, tuple: ConntrackTuple): Buffer {
  const { family, bytes: source } = addressBytes(tuple.source);
  const { bytes: destination } = addressBytes(tuple.destination);
  const [from, to] =
    family === AF_INET ? [ADDRESSES.v4Source, ADDRESSES.v4Destination] : [ADDRESSES.v6Source, ADDRESSES.v6Destination];
  return nested(
    type | NESTED,
    nested(TUPLE.addresses | NESTED, attribute(from, source), attribute(to, destination)),
    nested(TUPLE.protocol | NESTED, u8(PROTO.number, tuple.protocol), ...encodePorts(tuple)),
  );
}

function encodePorts(tuple: ConntrackTuple): Buffer[] {
  const { icmp, protocol, sourcePort, destinationPort } = tuple;
  if (!icmp) return [u16be(PROTO.sourcePort, sourcePort), u16be(PROTO.destinationPort, destinationPort)];
  const [id, type, code] =
    protocol === ICMP
      ? [PROTO.icmpId, PROTO.icmpType, PROTO.icmpCode]
      : [PROTO.icmp6Id, PROTO.icmp6Type, PROTO.icmp6Code];
  return [u16be(id, sourcePort), u8(type, icmp.type), u8(code, icmp.code)];
}

export const readEntry = reader("a connection", ({ body }: NetlinkMessage): ConntrackEntry => {
  const attributes = readAttributes(body, 4);
  const status = attributes.get(ATTR.status)?.readUInt32BE(0) ?? 0;
  const tcp = readAttributes(readAttributes(attributes.get(ATTR.protocolInfo) ?? EMPTY).get(1) ?? EMPTY);
  const tcpState = tcp.get(1)?.readUInt8(0);
  return {
    original: readTuple(attributes.get(ATTR.original)),
    reply: readTuple(attributes.get(ATTR.reply)),
    mark: attributes.get(ATTR.mark)?.readUInt32BE(0) ?? 0,
    timeout: attributes.get(ATTR.timeout)?.readUInt32BE(0) ?? 0,
    seenReply: (status & STATUS.seenReply) !== 0,
    assured: (status & STATUS.assured) !== 0,
    sourceNat: (status & STATUS.sourceNat) !== 0,
    destinationNat: (status & STATUS.destinationNat) !== 0,
    tcpState: tcpState === undefined ? undefined : TCP_STATES[tcpState],
    packets: countersOf(attributes),
  };
});

function countersOf(attributes: Attributes): number | undefined {
  const both = [attributes.get(ATTR.countersOriginal), attributes.get(ATTR.countersReply)];
  if (!both[0]) return undefined;
  return both.reduce(
    (sum, bytes) =>
      sum +
      Number(
        readAttributes(bytes ?? EMPTY)
          .get(1)
          ?.readBigUInt64BE(0) ?? 0n,
      ),
    0,
  );
}

function readTuple(bytes: Buffer | undefined): ConntrackTuple {
  const tuple = readAttributes(bytes ?? EMPTY);
  const addresses = readAttributes(tuple.get(TUPLE.addresses) ?? EMPTY);
  const proto = readAttributes(tuple.get(TUPLE.protocol) ?? EMPTY);
  const protocol = proto.get(PROTO.number)?.readUInt8(0) ?? 0;
  const id = proto.get(PROTO.icmpId) ?? proto.get(PROTO.icmp6Id);
  const common = {
    protocol,
    source: addressText(addresses.get(ADDRESSES.v4Source) ?? addresses.get(ADDRESSES.v6Source) ?? Buffer.alloc(4)),
    destination: addressText(
      addresses.get(ADDRESSES.v4Destination) ?? addresses.get(ADDRESSES.v6Destination) ?? Buffer.alloc(4),
    ),
    sourcePort: (proto.get(PROTO.sourcePort) ?? id)?.readUInt16BE(0) ?? 0,
    destinationPort: (proto.get(PROTO.destinationPort) ?? id)?.readUInt16BE(0) ?? 0,
  };
  if (protocol !== ICMP && protocol !== ICMP6) return common;
  const type = proto.get(PROTO.icmpType) ?? proto.get(PROTO.icmp6Type);
  const code = proto.get(PROTO.icmpCode) ?? proto.get(PROTO.icmp6Code);
  return { ...common, icmp: { type: type?.readUInt8(0) ?? 0, code: code?.readUInt8(0) ?? 0 } };
}
