import { fiveTupleLayout } from "../../gen/bpf/layout.gen.ts";
import { type Address, type Cidr, formatAddress, parseCidr, V4, V6 } from "../../kit/ip.ts";
import { errors } from "./errors.ts";

/** Addresses as the maps have them: 16 bytes in network order, IPv4 as ::ffff:a.b.c.d. */
export interface NetBytes {
  family: Cidr["family"];
  /** Of the 16 bytes: 96 more than written for IPv4. */
  prefixLength: number;
  bytes: Uint8Array;
}

const MAPPED = 0xffffn << 32n;

export function netBytes(text: string): NetBytes {
  const cidr = parseCidr(text);
  if (!cidr) throw errors.EBPF_BAD_MODEL(`${text} is no prefix`);
  const { family, base, length } = cidr;
  return { family, prefixLength: length + 128 - family.bits, bytes: bytesOf({ family, value: base }) };
}

export function addressBytes(address: string): Uint8Array {
  return netBytes(`${address}/${address.includes(":") ? 128 : 32}`).bytes;
}

export function addressText(bytes: Uint8Array): string {
  const value = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  const mapped = value >> 32n === MAPPED >> 32n;
  return formatAddress(mapped ? { family: V4, value: value & 0xffff_ffffn } : { family: V6, value });
}

/** `00:00:00:00:00:00` if it is unknown. */
export function macBytes(text: string | null | undefined): Uint8Array {
  return Buffer.from((text ?? "00:00:00:00:00:00").replaceAll(":", ""), "hex");
}

function bytesOf({ family, value }: Address): Uint8Array {
  const whole = family === V4 ? MAPPED | value : value;
  return Buffer.from(whole.toString(16).padStart(32, "0"), "hex");
}

/** A flow's other entry is under what its packets become, turned round. */
export function reversedKey(key: Buffer): Buffer {
  const { src, dst, sport, dport, protocol } = fiveTupleLayout.read(key);
  return fiveTupleLayout.write({ src: dst, dst: src, sport: dport, dport: sport, protocol });
}
