/** Messages of netlink as bytes: a header, then what the family wants, then attributes that may hold others. Pure. */
import { formatAddress, parseAddress, parseCidr, V4, V6 } from "../../kit/ip.ts";
import { errors } from "../errors.ts";

export const FLAGS = {
  request: 1,
  ack: 4,
  interrupted: 0x10,
  dump: 0x300,
  replace: 0x100,
  exclusive: 0x200,
  create: 0x400,
} as const;

/** The type of an attribute; its upper two bits are flags. */
const TYPE_MASK = 0x3fff;
export const NESTED = 0x8000;

export const AF_INET = 2;
export const AF_INET6 = 10;

export function align(length: number): number {
  return (length + 3) & ~3;
}

export function attribute(type: number, data: Uint8Array): Buffer {
  const bytes = Buffer.alloc(align(4 + data.length));
  bytes.writeUInt16LE(4 + data.length, 0);
  bytes.writeUInt16LE(type, 2);
  bytes.set(data, 4);
  return bytes;
}

export function nested(type: number, ...attributes: Uint8Array[]): Buffer {
  return attribute(type, Buffer.concat(attributes));
}

export function text(type: number, value: string): Buffer {
  return attribute(type, Buffer.from(`${value}\0`));
}

export function u8(type: number, value: number): Buffer {
  return attribute(type, Buffer.from([value]));
}

export function u16be(type: number, value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return attribute(type, bytes);
}

export function u32(type: number, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return attribute(type, bytes);
}

export function u32be(type: number, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return attribute(type, bytes);
}

export type Attributes = ReadonlyMap<number, Buffer>;

export function readAttributes(bytes: Buffer, from = 0): Attributes {
  const found = new Map<number, Buffer>();
  for (let at = from; at + 4 <= bytes.length; ) {
    const length = bytes.readUInt16LE(at);
    if (length < 4) break;
    found.set(bytes.readUInt16LE(at + 2) & TYPE_MASK, bytes.subarray(at + 4, at + length));
    at += align(length);
  }
  return found;
}

/** Bytes of the header that every message begins with. */
export const HEADER = 16;

export interface NetlinkMessage {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
  readonly body: Buffer;
}

/** The whole messages of a datagram; one that claims more bytes than there are ends it. */
export function* parseMessages(bytes: Buffer): Generator<NetlinkMessage> {
  for (let at = 0; at + HEADER <= bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    if (length < HEADER || length > bytes.length - at) return;
    yield {
      type: bytes.readUInt16LE(at + 4),
      flags: bytes.readUInt16LE(at + 6),
      sequence: bytes.readUInt32LE(at + 8),
      body: bytes.subarray(at + HEADER, at + length),
    };
    at += align(length);
  }
}

/** A reader of messages for which one that is too short, or of a shape it does not know, is an error with a code. */
export function reader<M, T>(what: string, read: (message: M) => T): (message: M) => T {
  return (message) => {
    try {
      return read(message);
    } catch (error) {
      if (error instanceof RangeError || error instanceof SyntaxError || error instanceof TypeError) {
        throw errors.KERNEL_BROKEN_MESSAGE(what).from(error);
      }
      throw error;
    }
  };
}

export function textOf(bytes: Buffer | undefined): string {
  return bytes?.toString("latin1").replace(/\0.*/s, "") ?? "";
}

export function macBytes(mac: string): Buffer {
  if (!/^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/i.test(mac)) throw errors.KERNEL_BAD_VALUE("a MAC address", mac);
  return Buffer.from(mac.replaceAll(":", ""), "hex");
}

export function macText(bytes: Buffer | undefined): string | undefined {
  if (bytes?.length !== 6) return undefined;
  return bytes.toString("hex").replace(/(..)(?=.)/g, "$1:");
}

export interface WireAddress {
  readonly family: typeof AF_INET | typeof AF_INET6;
  readonly bytes: Buffer;
}

export function addressBytes(address: string): WireAddress {
  const parsed = parseAddress(address);
  if (!parsed) throw errors.KERNEL_BAD_VALUE("an IP address", address);
  const length = parsed.family.bits / 8;
  return {
    family: parsed.family === V4 ? AF_INET : AF_INET6,
    bytes: Buffer.from(parsed.value.toString(16).padStart(length * 2, "0"), "hex"),
  };
}

export function addressText(bytes: Buffer): string {
  return formatAddress({ family: bytes.length === 4 ? V4 : V6, value: BigInt(`0x${bytes.toString("hex")}`) });
}

/** A destination: host bits are cut off, since the kernel refuses them. */
export function prefixBytes(prefix: string): WireAddress & { length: number } {
  const parsed = parseCidr(prefix);
  if (!parsed) throw errors.KERNEL_BAD_VALUE("a prefix", prefix);
  const { family, bytes } = addressBytes(formatAddress({ family: parsed.family, value: parsed.base }));
  return { family, bytes, length: parsed.length };
}

/** `10.0.0.1/24` as an address and how much of it is the network's. */
export function interfaceAddressBytes(address: string): WireAddress & { length: number } {
  const parsed = parseCidr(address);
  if (!parsed) throw errors.KERNEL_BAD_VALUE("an address with a prefix length", address);
  return { ...addressBytes(address.slice(0, address.indexOf("/"))), length: parsed.length };
}
