import type { Net, PortRange } from "../../calc/model.ts";
import { type Cidr, contains, formatAddress, formatCidr, parseAddress, parseCidr } from "../../kit/ip.ts";

export function isHost(net: Net): boolean {
  return net.endsWith(net.includes(":") ? "/128" : "/32");
}

/** As nft writes it back: a host without its length. */
export function prefixText(net: Net): string {
  return isHost(net) ? net.slice(0, net.lastIndexOf("/")) : net;
}

/** What nft wrote, in our own words: it spells some IPv6 addresses in another way. */
export function canonicalPrefix(text: string): string {
  const cidr = parseCidr(text);
  if (cidr) return prefixText(formatCidr(cidr));
  const address = parseAddress(text);
  return address ? formatAddress(address) : text;
}

/** Without those that lie in others: nft refuses members that overlap. */
export function covering(nets: readonly Net[]): Net[] {
  if (nets.every(isHost)) return [...new Set(nets)];
  const sorted = [...new Set(nets)].map((net) => parseCidr(net)!).sort(order);
  const kept: Cidr[] = [];
  for (const cidr of sorted) {
    const last = kept.at(-1);
    if (!last || !contains(last, { family: cidr.family, value: cidr.base })) kept.push(cidr);
  }
  return kept.map(formatCidr);
}

function order(a: Cidr, b: Cidr): number {
  if (a.family !== b.family) return a.family.bits - b.family.bits;
  if (a.base !== b.base) return a.base < b.base ? -1 : 1;
  return a.length - b.length;
}

/** Ordered, and joined where they touch. */
export function joinedRanges(ranges: readonly PortRange[]): PortRange[] {
  const joined: PortRange[] = [];
  for (const [first, last] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const before = joined.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else joined.push([first, last]);
  }
  return joined;
}
