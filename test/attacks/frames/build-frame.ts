import { checksum, ipBytes, type Payload, summed, v4, v6 } from "../../ebpf/frames.ts";

/** Bytes of a frame that begin with its Ethernet header. */
export interface Ethernet {
  to: string;
  from: string;
}

export const TYPE = { v4: 0x0800, v6: 0x86dd, arp: 0x0806 };

export function mac(text: string): Buffer {
  return Buffer.from(text.replaceAll(":", ""), "hex");
}

export function u16(...values: number[]): Buffer {
  const bytes = Buffer.alloc(2 * values.length);
  for (const [at, value] of values.entries()) bytes.writeUInt16BE(value & 0xffff, 2 * at);
  return bytes;
}

export function ethernet({ to, from }: Ethernet, type: number, bytes: Buffer): Buffer {
  return Buffer.concat([mac(to), mac(from), u16(type), bytes]);
}

/** A packet with good checksums, in the family of its addresses. */
export function packet(source: string, destination: string, payload: Payload, more: object = {}): Buffer {
  if (destination.includes(":")) return summed(v6({ source, destination, ...more }, payload)).bytes;
  return summed(v4({ source, destination, ...more }, payload)).bytes;
}

/** The transport's bytes with their checksum: what goes behind extension headers, into fragments, and into tunnels. */
export function transport(source: string, destination: string, payload: Payload): Payload {
  const whole = packet(source, destination, payload);
  return { protocol: payload.protocol, bytes: whole.subarray(destination.includes(":") ? 40 : 20) };
}

/** An IPv6 packet whose transport has its checksum already, behind extension headers that are bytes as they are. */
export function chained(source: string, destination: string, first: number, bytes: Buffer, hops = 64): Buffer {
  const header = Buffer.alloc(40);
  header[0] = 0x60;
  header.writeUInt16BE(bytes.length, 4);
  header[6] = first;
  header[7] = hops;
  ipBytes(source).copy(header, 8);
  ipBytes(destination).copy(header, 24);
  return Buffer.concat([header, bytes]);
}

/** One with some bytes changed, and the IPv4 header's checksum right again: else the first stack would look no further. */
export function changed(bytes: Buffer, at: number, value: Buffer | number, { sum = true } = {}): Buffer {
  const copy = Buffer.from(bytes);
  (typeof value === "number" ? Buffer.from([value]) : value).copy(copy, at);
  return sum ? headerSummed(copy) : copy;
}

/** Rights the checksum of an IPv4 header, of whatever length it claims and has. */
export function headerSummed(bytes: Buffer): Buffer {
  if (bytes.length < 20 || bytes[0]! >> 4 !== 4) return bytes;
  const header = Math.min(Math.max(20, (bytes[0]! & 15) * 4), bytes.length & ~1);
  bytes.writeUInt16BE(0, 10);
  bytes.writeUInt16BE(checksum(bytes.subarray(0, header)), 10);
  return bytes;
}
