import { type DuplicateAddress, MOST_REPORTED } from "../../api/protocol/ipam-report.ts";
import type { IPAMBlock } from "../../api/resources/ipam.ts";
import { type Cidr, contains, parseAddress, parseCidr } from "../../kit/ip.ts";
import type { Pod } from "../orchestrator-objects.ts";
import { addressesOf, isFinished } from "./live-objects.ts";

/**
 * Addresses of our blocks that more than one pod reports. Pods on the network of their node share its address; one that terminates may
 * have lost its network already.
 */
export function duplicateAddresses(pods: readonly Pod[], blocks: readonly IPAMBlock[]): DuplicateAddress[] {
  const users = new Map<string, Set<string>>();
  for (const pod of pods) {
    const { namespace, name, deletionTimestamp } = pod.metadata;
    if (pod.spec?.hostNetwork || deletionTimestamp !== undefined || isFinished(pod)) continue;
    for (const address of addressesOf(pod)) {
      users.set(address, (users.get(address) ?? new Set()).add(`${namespace}/${name}`));
    }
  }
  const cidrs = blocks.flatMap(({ spec }) => parseCidr(spec.cidr) ?? []);
  return [...users]
    .filter(([address, names]) => names.size > 1 && isInside(cidrs, address))
    .map(([address, names]) => ({ address, pods: [...names].sort() }))
    .sort((a, b) => (a.address < b.address ? -1 : 1))
    .slice(0, MOST_REPORTED);
}

function isInside(cidrs: readonly Cidr[], address: string): boolean {
  const parsed = parseAddress(address);
  return parsed !== undefined && cidrs.some((cidr) => contains(cidr, parsed));
}
