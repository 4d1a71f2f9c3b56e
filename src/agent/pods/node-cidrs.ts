import { errors } from "../../ipam/errors.ts";
import { type Cidr, formatAddress, parseCidr } from "../../kit/ip.ts";

/**
 * One address of each of the node's own prefixes, none that another pod of this node has. The records on disk are the only memory needed: the
 * prefixes are this node's alone. A prefix's first and last address, and the one after the first (often the gateway's), are never assigned.
 */
export function fromNodeCidrs(cidrs: readonly string[], taken: ReadonlySet<string>, mine: readonly string[]): string[] {
  const parsed = cidrs.flatMap((text) => parseCidr(text) ?? []);
  if (parsed.length === 0) throw errors.IPAM_EXHAUSTED(["the node's podCIDRs"], "the node has none");
  return parsed.map((cidr) => {
    const kept = mine.find((address) => inside(cidr, address));
    const found = kept ?? firstFree(cidr, taken);
    if (!found) throw errors.IPAM_EXHAUSTED([cidrs.join(", ")], "every address is taken");
    return found;
  });
}

function firstFree(cidr: Cidr, taken: ReadonlySet<string>): string | undefined {
  const size = 1n << BigInt(cidr.family.bits - cidr.length);
  for (let at = 2n; at < size - 1n; at++) {
    const address = formatAddress({ family: cidr.family, value: cidr.base + at });
    if (!taken.has(address)) return address;
  }
  return undefined;
}

function inside(cidr: Cidr, address: string): boolean {
  const own = parseCidr(`${address}/${cidr.length}`);
  return own?.family === cidr.family && own.base === cidr.base;
}
