/** Addresses and prefixes of both families as numbers. The family is a value, so code that uses it is written once. */
export const V4 = { name: "IPv4", bits: 32 } as const;
export const V6 = { name: "IPv6", bits: 128 } as const;
export type Family = typeof V4 | typeof V6;

export interface Address {
  family: Family;
  value: bigint;
}

export interface Cidr {
  family: Family;
  /** The network address: host bits are zero. */
  base: bigint;
  length: number;
  /** Whether the text had no host bits set: `10.0.0.0/8` yes, `10.0.0.1/8` no. */
  masked: boolean;
}

/** The address, or undefined when the text is not exactly one. No zones, no ports, no leading zeros in IPv4. */
export function parseAddress(text: string): Address | undefined {
  const family = text.includes(":") ? V6 : V4;
  const value = family === V4 ? parseV4(text) : parseV6(text);
  return value === undefined ? undefined : { family, value };
}

export function formatAddress(address: Address): string {
  return address.family === V4 ? formatV4(address.value) : formatV6(address.value);
}

export function parseCidr(text: string): Cidr | undefined {
  const match = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text);
  const address = match && parseAddress(match[1]!);
  if (!match || !address) return undefined;
  const length = Number(match[2]);
  if (length > address.family.bits) return undefined;
  const base = networkOf(address, length);
  return { family: address.family, base, length, masked: base === address.value };
}

export function formatCidr(cidr: Cidr): string {
  return `${formatAddress({ family: cidr.family, value: cidr.base })}/${cidr.length}`;
}

export function contains(cidr: Cidr, address: Address): boolean {
  return cidr.family === address.family && networkOf(address, cidr.length) === cidr.base;
}

export function overlaps(a: Cidr, b: Cidr): boolean {
  const [wide, narrow] = a.length <= b.length ? [a, b] : [b, a];
  return contains(wide, { family: narrow.family, value: narrow.base });
}

function networkOf(address: Address, length: number): bigint {
  const hostBits = BigInt(address.family.bits - length);
  return (address.value >> hostBits) << hostBits;
}

function parseV4(text: string): bigint | undefined {
  const parts = text.split(".");
  if (parts.length !== 4) return undefined;
  let value = 0n;
  for (const part of parts) {
    if (!/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined;
    value = (value << 8n) | BigInt(part);
  }
  return value;
}

function formatV4(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join(".");
}

function parseV6(text: string): bigint | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head, tail] = halves.map((half, index) => groupsOf(half, index === halves.length - 1));
  if (!head || (halves.length === 2 && !tail)) return undefined;
  const after = tail ?? [];
  const missing = 8 - head.length - after.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const groups = [...head, ...Array<number>(missing).fill(0), ...after];
  return groups.reduce((value, group) => (value << 16n) | BigInt(group), 0n);
}

/** The 16-bit groups of one side of `::`; the last two may be written as an IPv4 address. */
function groupsOf(half: string, mayEndInV4: boolean): number[] | undefined {
  if (half === "") return [];
  const groups: number[] = [];
  const parts = half.split(":");
  for (const [index, part] of parts.entries()) {
    if (part.includes(".") && mayEndInV4 && index === parts.length - 1) {
      const v4 = parseV4(part);
      if (v4 === undefined) return undefined;
      groups.push(Number(v4 >> 16n), Number(v4 & 0xffffn));
    } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16));
    else return undefined;
  }
  return groups;
}

/** RFC 5952: lower case, no leading zeros, the longest run of two or more zero groups becomes `::`. */
function formatV6(value: bigint): string {
  const groups = Array.from({ length: 8 }, (_, i) => Number((value >> BigInt(112 - 16 * i)) & 0xffffn));
  let best = { at: -1, length: 1 };
  for (let at = 0; at < 8; at++) {
    let length = 0;
    while (at + length < 8 && groups[at + length] === 0) length++;
    if (length > best.length) best = { at, length };
  }
  const hex = (part: number[]) => part.map((group) => group.toString(16)).join(":");
  if (best.at < 0) return hex(groups);
  return `${hex(groups.slice(0, best.at))}::${hex(groups.slice(best.at + best.length))}`;
}
