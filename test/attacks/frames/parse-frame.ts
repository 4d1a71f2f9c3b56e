import { formatAddress, V4, V6 } from "../../../src/kit/ip.ts";

/** What a frame says, as far as it says it. A port is undefined where the packet does not reach that far. */
export interface Packet {
  family: 4 | 6;
  source: string;
  destination: string;
  protocol: number;
  sport?: number;
  dport?: number;
  /** Of ICMP. */
  type?: number;
  /** The packet an ICMP error quotes, or the one in our tunnel. */
  inner?: Packet;
  /** The frame in our tunnel has a VLAN tag. */
  innerTagged?: true;
  fragment?: { id: number; later: boolean };
}

export interface Parsed {
  etherType: number;
  sourceMac: string;
  packet?: Packet;
  /** Of ARP. */
  sender?: { mac: string; address: string };
}

export const [ICMP, TCP, UDP, ICMPV6] = [1, 6, 17, 58] as const;
export const OVERLAY_PORT = 4789;
const [IPV4, IPV6, ARP] = [0x0800, 0x86dd, 0x0806];
const [VXLAN_HEADER, ETHERNET] = [8, 14];
const HAS_PORTS = new Set([TCP, UDP, 33, 132, 136]);
const EXTENSIONS = new Set([0, 43, 60, 135, 139, 140]);

export function parseFrame(frame: Buffer): Parsed {
  const { etherType, rest } = untagged(frame);
  const parsed: Parsed = { etherType, sourceMac: macText(frame.subarray(6, 12)) };
  if (etherType === IPV4 || etherType === IPV6) {
    const packet = parsePacket(rest);
    if (packet) parsed.packet = packet;
  }
  if (etherType === ARP && rest.length >= 18) {
    parsed.sender = { mac: macText(rest.subarray(8, 14)), address: addressOf(rest.subarray(14, 18)) };
  }
  return parsed;
}

/** What is behind the Ethernet header. A tag that has only a priority is none: stacks take it off. */
function untagged(frame: Buffer): { etherType: number; rest: Buffer; tagged: boolean } {
  const etherType = frame.length >= ETHERNET ? frame.readUInt16BE(12) : 0;
  const isPriority = etherType === 0x8100 && frame.length >= ETHERNET + 4 && (frame.readUInt16BE(14) & 0xfff) === 0;
  const tagged = etherType === 0x8100 || etherType === 0x88a8;
  if (!isPriority) return { etherType, tagged, rest: frame.subarray(ETHERNET) };
  return { etherType: frame.readUInt16BE(16), tagged, rest: frame.subarray(ETHERNET + 4) };
}

function parsePacket(bytes: Buffer): Packet | undefined {
  const version = bytes.length > 0 ? bytes[0]! >> 4 : 0;
  if (version === 4 && bytes.length >= 20) return parseV4(bytes);
  if (version === 6 && bytes.length >= 40) return parseV6(bytes);
  return undefined;
}

function parseV4(bytes: Buffer): Packet {
  const [word, id] = [bytes.readUInt16BE(6), bytes.readUInt16BE(4)];
  const packet: Packet = {
    ...{ family: 4, protocol: bytes[9]! },
    ...{ source: addressOf(bytes.subarray(12, 16)), destination: addressOf(bytes.subarray(16, 20)) },
  };
  if ((word & 0x3fff) !== 0) packet.fragment = { id, later: (word & 0x1fff) !== 0 };
  return withTransport(packet, bytes.subarray((bytes[0]! & 15) * 4));
}

function parseV6(bytes: Buffer): Packet {
  const packet: Packet = {
    ...{ family: 6, protocol: bytes[6]! },
    ...{ source: addressOf(bytes.subarray(8, 24)), destination: addressOf(bytes.subarray(24, 40)) },
  };
  return behindExtensions(packet, bytes.subarray(40));
}

/** Steps over extension headers: `bytes` begin with the header that `protocol` names. */
export function behindExtensions(packet: Packet, bytes: Buffer): Packet {
  let rest = bytes;
  while (rest.length >= 8) {
    if (packet.protocol === 44) {
      packet.fragment = { id: rest.readUInt32BE(4), later: (rest.readUInt16BE(2) & 0xfff8) !== 0 };
      packet.protocol = rest[0]!;
      rest = rest.subarray(8);
      if (packet.fragment.later) break;
    } else if (EXTENSIONS.has(packet.protocol) || packet.protocol === 51) {
      const length = packet.protocol === 51 ? (rest[1]! + 2) * 4 : (rest[1]! + 1) * 8;
      packet.protocol = rest[0]!;
      rest = rest.subarray(length);
    } else break;
  }
  return withTransport(packet, rest);
}

/** Ports, type, and what is inside. */
function withTransport(packet: Packet, bytes: Buffer): Packet {
  if (packet.fragment?.later) return packet;
  if (HAS_PORTS.has(packet.protocol) && bytes.length >= 4) {
    packet.sport = bytes.readUInt16BE(0);
    packet.dport = bytes.readUInt16BE(2);
  }
  if ((packet.protocol === ICMP || packet.protocol === ICMPV6) && bytes.length >= 1) {
    packet.type = bytes[0]!;
    // Of an echo: its identifier, which makes it one conversation.
    if (bytes.length >= 6) packet.sport = bytes.readUInt16BE(4);
  }
  const isTunnel = packet.protocol === UDP && packet.dport === OVERLAY_PORT;
  const frame = isTunnel ? untagged(bytes.subarray(8 + VXLAN_HEADER)) : undefined;
  if (frame?.tagged) packet.innerTagged = true;
  const inside = isError(packet) ? bytes.subarray(8) : frame?.rest;
  const inner = inside && parsePacket(inside);
  if (inner) packet.inner = inner;
  return packet;
}

/** Of ICMPv6 the first half of all types are errors, also those that are not assigned. */
export function isError({ protocol, type }: Packet): boolean {
  if (type === undefined) return false;
  return protocol === ICMPV6 ? type < 128 : protocol === ICMP && [3, 4, 5, 11, 12].includes(type);
}

export function addressOf(bytes: Buffer): string {
  return formatAddress({ family: bytes.length === 4 ? V4 : V6, value: BigInt(`0x${bytes.toString("hex")}`) });
}

function macText(bytes: Buffer): string {
  return (bytes.toString("hex").match(/../g) ?? []).join(":");
}

/** One line for a failure. */
export function shownPacket(packet: Packet): string {
  const { source, destination, protocol, sport, dport, type, fragment, inner } = packet;
  const more = [
    ...(type === undefined ? [] : [`type ${type}`]),
    ...(fragment ? [`fragment ${fragment.id}${fragment.later ? ", later" : ""}`] : []),
    ...(inner ? [`[${shownPacket(inner)}]`] : []),
  ];
  return `protocol ${protocol} ${source}:${sport ?? "-"} > ${destination}:${dport ?? "-"} ${more.join(" ")}`.trim();
}
