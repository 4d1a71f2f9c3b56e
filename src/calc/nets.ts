import { type Address, formatAddress, formatCidr, parseAddress, parseCidr, V4 } from "../kit/ip.ts";
import type { Net } from "./model.ts";
import { orMake } from "./or-make.ts";

const OCTET = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const V4_TEXT = new RegExp(`^${OCTET}\\.${OCTET}\\.${OCTET}\\.${OCTET}$`);

/** A prefix or a plain address as the model writes it; undefined for what is neither. */
export function toNet(text: string): Net | undefined {
  const cidr = parseCidr(text);
  if (cidr) return formatCidr(cidr);
  const address = parseAddress(text);
  return address && hostNet(address);
}

export function hostNet({ family, value }: Address): Net {
  return formatCidr({ family, base: value, length: family.bits, masked: true });
}

/** An address as the model writes it; undefined for what is none. */
export function toAddress(text: string): string | undefined {
  // IPv4 has one way of writing, so most addresses need no reading.
  if (V4_TEXT.test(text)) return text;
  const address = parseAddress(text);
  return address && formatAddress(address);
}

/** The address of a /32 or /128. */
export function addressOf(net: Net): string {
  return net.slice(0, net.lastIndexOf("/"));
}

export function isV4(text: string): boolean {
  return !text.includes(":");
}

/** Canonical, each once, ordered; what is no prefix is left out. */
export function toNets(texts: readonly string[] | undefined): Net[] {
  return [...new Set((texts ?? []).flatMap((text) => toNet(text) ?? []))].sort();
}

/** Prefixes arranged for asking, by length: one look per length that occurs. */
export class NetTable<T = true> {
  readonly #v4 = new Map<number, Map<bigint, T>>();
  readonly #v6 = new Map<number, Map<bigint, T>>();

  add(net: Net, value: T): void {
    const cidr = parseCidr(net);
    if (!cidr) return;
    const lengths = cidr.family === V4 ? this.#v4 : this.#v6;
    orMake(lengths, cidr.length, () => new Map<bigint, T>()).set(cidr.base, value);
  }

  remove(net: Net): void {
    const cidr = parseCidr(net);
    if (!cidr) return;
    const lengths = cidr.family === V4 ? this.#v4 : this.#v6;
    const bases = lengths.get(cidr.length);
    bases?.delete(cidr.base);
    if (bases?.size === 0) lengths.delete(cidr.length);
  }

  /** What the longest prefix around the address has; undefined where none is around it. */
  find({ family, value }: Address): T | undefined {
    let best = -1;
    let found: T | undefined;
    for (const [length, bases] of family === V4 ? this.#v4 : this.#v6) {
      if (length <= best) continue;
      const shift = BigInt(family.bits - length);
      const hit = bases.get((value >> shift) << shift);
      if (hit === undefined) continue;
      best = length;
      found = hit;
    }
    return found;
  }
}
