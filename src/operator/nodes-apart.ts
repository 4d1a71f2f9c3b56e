import type { KubeObject } from "../api/object.ts";
import { readNodeNetwork } from "../api/protocol/node-network.ts";
import { tunnelOf } from "../api/protocol/pool-tunnels.ts";
import type { IPPool } from "../api/resources/ip-pool.ts";
import { type Cidr, contains, formatCidr, parseAddress, parseCidr } from "../kit/ip.ts";
import { firstFew } from "./workload-health.ts";

interface Subnet {
  cidr: Cidr;
  nodes: { name: string; address: string }[];
}

/**
 * Nodes without routes to each other's pods, because a pool has no encapsulation and a router is between them: one line for each two
 * subnets. Subnets are those of the nodes' interfaces, as agents report them; a node that reports none is not judged.
 */
export function nodesApart(nodes: readonly KubeObject[], pools: readonly Pick<IPPool, "spec">[]): string[] {
  return ([32, 128] as const).flatMap((bits) => {
    const plain = pools.some(({ spec }) => parseCidr(spec.cidr)?.family.bits === bits && tunnelOf(spec) === undefined);
    return plain ? betweenSubnets(subnetsOf(nodes, bits)) : [];
  });
}

function subnetsOf(nodes: readonly KubeObject[], bits: number): Subnet[] {
  const found = new Map<string, Subnet>();
  for (const node of nodes) {
    const { addressV4, addressV6 } = readNodeNetwork(node);
    const text = (bits === 32 ? addressV4 : addressV6) ?? "";
    const cidr = text.includes("/") ? parseCidr(text) : undefined;
    if (!cidr) continue;
    const [address = ""] = text.split("/");
    const subnet = found.get(formatCidr(cidr)) ?? { cidr, nodes: [] };
    subnet.nodes.push({ name: node.metadata.name, address });
    found.set(formatCidr(cidr), subnet);
  }
  return [...found.values()];
}

function betweenSubnets(subnets: readonly Subnet[]): string[] {
  return subnets.flatMap((one, at) =>
    subnets.slice(at + 1).flatMap((other) => (isIn(one, other) && isIn(other, one) ? [] : [pairOf(one, other)])),
  );
}

function pairOf(one: Subnet, other: Subnet): string {
  const [here, there] = [one, other].map(
    ({ nodes, cidr }) => `${firstFew(nodes.map(({ name }) => name).sort())} in ${formatCidr(cidr)}`,
  );
  return `${here} and ${there}`;
}

/** Whether every node of the first has an address in the subnet of the second. */
function isIn({ nodes }: Subnet, { cidr }: Subnet): boolean {
  return nodes.every(({ address }) => {
    const parsed = parseAddress(address);
    return parsed !== undefined && contains(cidr, parsed);
  });
}
