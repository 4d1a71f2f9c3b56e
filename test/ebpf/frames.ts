import { addressText } from "../../src/dataplane/ebpf/net-bytes.ts";
import { parseAddress } from "../../src/kit/ip.ts";

/** Frames put together from parts, outermost last: `frame(v4({ ... }, tcp({ ... })))`. */
export const MAC = { pod: "02:00:00:00:00:0a", host: "ee:ee:ee:ee:ee:ee" };
export const TCP = { fin: 1, syn: 2, rst: 4, ack: 16, synAck: 18 };

export interface Payload {
  protocol: number;
  bytes: Buffer;
}

export function frame(
  packet: { type: number; bytes: Buffer },
  options: { source?: string; type?: number } = {},
): Buffer {
  const header = Buffer.concat([mac(MAC.host), mac(options.source ?? MAC.pod), Buffer.alloc(2)]);
  header.writeUInt16BE(options.type ?? packet.type, 12);
  return Buffer.concat([header, packet.bytes]);
}

export interface V4 {
  source: string;
  destination: string;
  ttl?: number;
  id?: number;
  /** In units of eight bytes. */
  offset?: number;
  more?: boolean;
  options?: Buffer;
  /** What the header says, where it is not what is there. */
  length?: number;
}

export function v4(ip: V4, { protocol, bytes }: Payload): { type: number; bytes: Buffer } {
  const options = ip.options ?? Buffer.alloc(0);
  const header = Buffer.alloc(20 + options.length);
  header[0] = 0x40 | (header.length / 4);
  header.writeUInt16BE(ip.length ?? header.length + bytes.length, 2);
  header.writeUInt16BE(ip.id ?? 1, 4);
  header.writeUInt16BE((ip.more ? 0x2000 : 0) | (ip.offset ?? 0), 6);
  header[8] = ip.ttl ?? 64;
  header[9] = protocol;
  addressInto(header, 12, ip.source);
  addressInto(header, 16, ip.destination);
  options.copy(header, 20);
  header.writeUInt16BE(checksum(header), 10);
  return { type: 0x0800, bytes: Buffer.concat([header, bytes]) };
}

export interface V6 {
  source: string;
  destination: string;
  hops?: number;
  /** Extension headers, in order: a type and its bytes, whose first is filled in. */
  extensions?: readonly (readonly [type: number, bytes: Buffer])[];
}

export function v6(ip: V6, { protocol, bytes }: Payload): { type: number; bytes: Buffer } {
  const chain = ip.extensions ?? [];
  const extensions = chain.map(([, content], index) => {
    const copy = Buffer.from(content);
    copy[0] = chain[index + 1]?.[0] ?? protocol;
    return copy;
  });
  const payload = Buffer.concat([...extensions, bytes]);
  const header = Buffer.alloc(40);
  header[0] = 0x60;
  header.writeUInt16BE(payload.length, 4);
  header[6] = chain[0]?.[0] ?? protocol;
  header[7] = ip.hops ?? 64;
  addressInto(header, 8, ip.source);
  addressInto(header, 24, ip.destination);
  return { type: 0x86dd, bytes: Buffer.concat([header, payload]) };
}

export function ports(protocol: number, source: number, destination: number, more: Buffer): Payload {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt16BE(source, 0);
  bytes.writeUInt16BE(destination, 2);
  return { protocol, bytes: Buffer.concat([bytes, more]) };
}

export function tcp(source: number, destination: number, flags = TCP.syn, data = ""): Payload {
  const rest = Buffer.alloc(16);
  rest[8] = 0x50;
  rest[9] = flags;
  return ports(6, source, destination, Buffer.concat([rest, Buffer.from(data)]));
}

export function udp(source: number, destination: number, data = "hello"): Payload {
  const rest = Buffer.alloc(4);
  rest.writeUInt16BE(8 + data.length, 0);
  return ports(17, source, destination, Buffer.concat([rest, Buffer.from(data)]));
}

export function icmp(protocol: 1 | 58, type: number, code = 0, id = 7, data: Buffer = Buffer.alloc(0)): Payload {
  const header = Buffer.alloc(8);
  header[0] = type;
  header[1] = code;
  header.writeUInt16BE(id, 4);
  return { protocol, bytes: Buffer.concat([header, data]) };
}

export function arp(sender: { mac: string; address: string }): { type: number; bytes: Buffer } {
  const head = Buffer.from("0001080006040001", "hex");
  const ends = [mac(sender.mac), ipBytes(sender.address), Buffer.alloc(6), ipBytes("169.254.1.1")];
  return { type: 0x0806, bytes: Buffer.concat([head, ...ends]) };
}

export function ipBytes(text: string): Buffer {
  const { family, value } = parseAddress(text)!;
  return Buffer.from(value.toString(16).padStart(family.bits / 4, "0"), "hex");
}

export function checksum(header: Buffer): number {
  let sum = 0;
  for (let at = 0; at < header.length; at += 2) sum += header.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}

function addressInto(header: Buffer, at: number, text: string): void {
  ipBytes(text).copy(header, at);
}

function mac(text: string): Buffer {
  return Buffer.from(text.replaceAll(":", ""), "hex");
}

/** Where the transport header is, and what it is. */
function transportOf(packet: Buffer): { at: number; protocol: number; pseudo: Buffer; isFragment: boolean } {
  const isV4 = packet[0]! >> 4 === 4;
  const at = isV4 ? (packet[0]! & 15) * 4 : 40;
  const protocol = packet[isV4 ? 9 : 6]!;
  const addresses = isV4 ? packet.subarray(12, 20) : packet.subarray(8, 40);
  const length = (isV4 ? packet.readUInt16BE(2) : 40 + packet.readUInt16BE(4)) - at;
  const rest = Buffer.alloc(8);
  rest.writeUInt32BE(length, 0);
  rest.writeUInt32BE(protocol, 4);
  const isFragment = isV4 && (packet.readUInt16BE(6) & 0x3fff) !== 0;
  return { at, protocol, pseudo: Buffer.concat([addresses, rest]), isFragment };
}

const SUM_AT: Record<number, number> = { 1: 2, 6: 16, 17: 6, 58: 2 };

/** The packet with the checksum its transport has. */
export function summed<T extends { bytes: Buffer }>(packet: T): T {
  const { at, protocol, pseudo } = transportOf(packet.bytes);
  const sumAt = SUM_AT[protocol];
  if (sumAt === undefined) return packet;
  packet.bytes.writeUInt16BE(0, at + sumAt);
  const over = padded(Buffer.concat([protocol === 1 ? Buffer.alloc(0) : pseudo, packet.bytes.subarray(at)]));
  packet.bytes.writeUInt16BE(checksum(over), at + sumAt);
  return packet;
}

/** Checksums that are wrong, by name; a UDP packet may have none. */
export function wrongChecksums(whole: Buffer): string[] {
  const packet = whole.subarray(14);
  const { at, protocol, pseudo, isFragment } = transportOf(packet);
  const wrong: string[] = [];
  if (packet[0]! >> 4 === 4 && checksum(packet.subarray(0, at)) !== 0) wrong.push("IP header");
  const sumAt = SUM_AT[protocol];
  if (sumAt === undefined || isFragment || (protocol === 17 && packet.readUInt16BE(at + sumAt) === 0)) return wrong;
  const over = padded(Buffer.concat([protocol === 1 ? Buffer.alloc(0) : pseudo, packet.subarray(at)]));
  return checksum(over) === 0 ? wrong : [...wrong, "transport"];
}

function padded(bytes: Buffer): Buffer {
  return bytes.length % 2 === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(1)]);
}

/** `tcp 10.0.0.1:1 > 10.0.0.2:2`, or `icmp 3/4 10.0.0.1 > 10.0.0.2`: what a frame says. */
export function spoken(whole: Buffer): string {
  return spokenPacket(whole.subarray(14));
}

/** What an ICMP error quotes. */
export function quoted(whole: Buffer): string {
  const packet = whole.subarray(14);
  return spokenPacket(packet.subarray(transportOf(packet).at + 8));
}

function spokenPacket(packet: Buffer): string {
  const isV4 = packet[0]! >> 4 === 4;
  const { at, protocol } = transportOf(packet);
  const [source, destination] = isV4
    ? [packet.subarray(12, 16), packet.subarray(16, 20)].map((bytes) => [...bytes].join("."))
    : [packet.subarray(8, 24), packet.subarray(24, 40)].map((bytes) => `[${addressText(bytes)}]`);
  if (protocol !== 6 && protocol !== 17) {
    return `icmp ${packet[at]}/${packet[at + 1]} ${source} > ${destination}`;
  }
  const [sport, dport] = [packet.readUInt16BE(at), packet.readUInt16BE(at + 2)];
  return `${protocol === 6 ? "tcp" : "udp"} ${source}:${sport} > ${destination}:${dport}`;
}
