import type { Net, ServicePort } from "../../calc/model.ts";
import { contains, type Family, formatCidr, parseAddress, parseCidr, V4, V6 } from "../../kit/ip.ts";

/**
 * The smallest prefix of each family that holds every cluster address. An API server takes them all out of one range, so every address
 * within it is a cluster IP, of the past or of the future.
 */
export function clusterRanges(services: Iterable<ServicePort>): Net[] {
  const found = new Map<Family, { first: bigint; last: bigint }>();
  for (const { clusterAddress } of services) {
    const address = clusterAddress === null ? undefined : parseAddress(clusterAddress);
    if (!address) continue;
    const { family, value } = address;
    const range = found.get(family) ?? { first: value, last: value };
    if (value < range.first) range.first = value;
    if (value > range.last) range.last = value;
    found.set(family, range);
  }
  return [V4, V6].flatMap((family) => {
    const range = found.get(family);
    return range ? [prefixOf(family, range)] : [];
  });
}

function prefixOf(family: Family, { first, last }: { first: bigint; last: bigint }): Net {
  const differing = (first ^ last).toString(2);
  const length = first === last ? family.bits : family.bits - differing.length;
  const host = BigInt(family.bits - length);
  return formatCidr({ family, base: (first >> host) << host, length, masked: true });
}

export function isWithin(address: string, ranges: readonly Net[]): boolean {
  const parsed = parseAddress(address);
  return parsed !== undefined && ranges.some((range) => contains(parseCidr(range)!, parsed));
}
