/** What a row of counts is of, as bytes: the counting thread makes it, and the thread that has the model reads it. */
import { addressText } from "../../../kernel/netlink/netlink-message.ts";

export const ROW_KEY = 60;
const AT = {
  ...{ source: 0, destination: 16, asked: 32 },
  ...{ destinationPort: 48, sourcePort: 50, askedPort: 52 },
  ...{ protocol: 54, kind: 55, number: 56 },
} as const;
/** A connection that was allowed; one that policy denies by now; packets that a rule dropped. */
export const ROW_KINDS = { allowed: 0, ended: 1, dropped: 2 } as const;
/** With the kind: rows are many, so this one has no ports, or nothing but its verdict and rule. */
export const COARSE = { ports: 0x40, addresses: 0x80 } as const;

export interface RowKey {
  source: string;
  destination: string;
  asked: string;
  sourcePort: number;
  /** Of ICMP: type and code. */
  destinationPort: number;
  askedPort: number;
  protocol: number;
  kind: number;
  coarse: "ports" | "addresses" | undefined;
  /** Of what denied it. */
  number: number;
}

/** Writes keys, each into the same bytes. */
export class RowKeyWriter {
  readonly bytes = new Uint8Array(ROW_KEY);
  private readonly view = new DataView(this.bytes.buffer);

  write(
    ends: { source: Uint8Array; destination: Uint8Array; asked: Uint8Array },
    ports: { sourcePort: number; destinationPort: number; askedPort: number },
    protocol: number,
    kind: number,
    number: number,
  ): Uint8Array {
    this.bytes.set(ends.source, AT.source);
    this.bytes.set(ends.destination, AT.destination);
    this.bytes.set(ends.asked, AT.asked);
    this.view.setUint16(AT.destinationPort, ports.destinationPort);
    this.view.setUint16(AT.sourcePort, ports.sourcePort);
    this.view.setUint16(AT.askedPort, ports.askedPort);
    this.bytes[AT.protocol] = protocol;
    this.bytes[AT.kind] = kind;
    this.view.setUint32(AT.number, number);
    return this.bytes;
  }

  /** The key that was written, but coarser. */
  coarser(how: keyof typeof COARSE): Uint8Array {
    this.bytes.fill(0, how === "ports" ? AT.asked : AT.source, AT.protocol);
    this.bytes[AT.kind] = (this.bytes[AT.kind]! & 0x3f) | COARSE[how];
    return this.bytes;
  }
}

export function readRowKey(keys: Uint8Array, index: number): RowKey {
  const bytes = Buffer.from(keys.buffer, keys.byteOffset + index * ROW_KEY, ROW_KEY);
  const kind = bytes[AT.kind]!;
  return {
    source: textAt(bytes, AT.source),
    destination: textAt(bytes, AT.destination),
    asked: textAt(bytes, AT.asked),
    sourcePort: bytes.readUInt16BE(AT.sourcePort),
    destinationPort: bytes.readUInt16BE(AT.destinationPort),
    askedPort: bytes.readUInt16BE(AT.askedPort),
    protocol: bytes[AT.protocol]!,
    kind: kind & 0x3f,
    coarse: kind & COARSE.addresses ? "addresses" : kind & COARSE.ports ? "ports" : undefined,
    number: bytes.readUInt32BE(AT.number),
  };
}

function textAt(bytes: Buffer, at: number): string {
  const mapped = bytes.readUInt32BE(at + 8) === 0xffff && bytes.readBigUInt64BE(at) === 0n;
  return addressText(mapped ? bytes.subarray(at + 12, at + 16) : bytes.subarray(at, at + 16));
}
