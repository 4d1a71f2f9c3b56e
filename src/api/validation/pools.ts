import { type Cidr, formatCidr, overlaps, parseCidr, V4 } from "../../kit/ip.ts";
import { type Problem, reporters } from "./problem.ts";

const POOL_RULE =
  "Pools are whole prefixes, big enough for a block, apart from each other and from link-local addresses.";

export const POOL_PROBLEMS = {
  POOL_CIDR_MALFORMED: {
    title: "A pool's CIDR is not a prefix",
    why: "Addresses cannot be handed out of something that is no prefix.",
    fix: "Write a prefix such as 10.244.0.0/16.",
    rule: POOL_RULE,
  },
  POOL_CIDR_UNMASKED: {
    title: "A pool's CIDR has host bits set",
    why: "It is unclear whether the prefix or the address is wrong.",
    fix: "Write the network address.",
    rule: POOL_RULE,
  },
  POOL_CIDR_LINK_LOCAL: {
    title: "A pool lies in link-local addresses",
    why: "Link-local addresses are not routed between nodes, and the service uses some itself.",
    fix: "Choose a private prefix such as 10.244.0.0/16.",
    rule: POOL_RULE,
  },
  POOL_BLOCK_SIZE: {
    title: "A pool's block size does not fit its family",
    why: "Nodes take addresses in blocks of this size; outside the range a block would be useless or exhaust the pool.",
    fix: "Use 20 to 32 for IPv4, 116 to 128 for IPv6, or leave it out.",
    rule: "Block size is 20 to 32 for IPv4 and 116 to 128 for IPv6.",
  },
  POOL_TOO_SMALL: {
    title: "A pool is smaller than one of its blocks",
    why: "No node could ever take a block, so no pod would get an address.",
    fix: "Choose a bigger prefix or a smaller block.",
    rule: POOL_RULE,
  },
  POOLS_OVERLAP: {
    title: "Two pools share addresses",
    why: "The same address could be given to two pods.",
    fix: "Choose prefixes that do not overlap.",
    rule: POOL_RULE,
  },
  POOL_NAME_TWICE: {
    title: "Two pools have the same name",
    why: "The second would overwrite the first.",
    fix: "Give each pool its own name.",
    rule: "Names of pools are unique.",
  },
  POOL_OUTSIDE_CLUSTER: {
    title: "A pool lies outside the cluster's pod prefixes",
    why: "Other components take only addresses in the cluster's pod prefixes for pods.",
    fix: "Choose a prefix inside the cluster's own, or make the cluster with this one.",
    rule: "Listed pools lie within the prefixes the platform gives pods.",
  },
  POOL_IPIP_IPV6: {
    title: "An IPv6 pool asks for IPIP",
    why: "IPIP carries IPv4 only.",
    fix: "Use VXLAN or no encapsulation.",
    rule: "IPv6 pools have no IPIP.",
  },
  POOL_TWO_OVERLAYS: {
    title: "A pool asks for VXLAN and IPIP at once",
    why: "A packet travels in one of the two.",
    fix: "Set one of vxlanMode and ipipMode to Never.",
    rule: "vxlanMode and ipipMode are not both on.",
  },
  POOL_LOAD_BALANCER: {
    title: "A pool for load balancers has settings of pod pools",
    why: "Addresses of load balancers belong to no node and travel in no overlay.",
    fix: "Leave out other uses, encapsulation, node selectors and disableBGPExport.",
    rule: "The use LoadBalancer is exclusive, without encapsulation, for all nodes.",
  },
  POOL_TUNNEL_NAMESPACES: {
    title: "A pool for tunnels selects namespaces",
    why: "Tunnel addresses belong to nodes, which are in no namespace.",
    fix: "Leave out namespaceSelector, or allow only Workload.",
    rule: "A namespaceSelector does not go with the use Tunnel.",
  },
  POOL_FIELD_IMMUTABLE: {
    title: "A pool's prefix or block size was changed",
    why: "Addresses already handed out would no longer belong to the pool.",
    fix: "Create a new pool, move the pods, then disable and delete the old one.",
    rule: "A pool's cidr and blockSize cannot be changed.",
  },
} as const;

/** Shared by the two kinds that hold pools. */
export const poolProblem = reporters(POOL_PROBLEMS);
const at = poolProblem;

/** The part of a pool that Installation and IPPool share; `path` is where its fields are. */
export interface PoolShape {
  path: string;
  name?: string;
  cidr: string;
  blockSize?: number;
  disabled?: boolean;
}

const LINK_LOCAL = ["169.254.0.0/16", "fe80::/10"].map((text) => parseCidr(text)!);

export function poolShapeProblems(pool: PoolShape): Problem[] {
  const path = `${pool.path}.cidr`;
  const cidr = parseCidr(pool.cidr);
  if (!cidr) return [at.POOL_CIDR_MALFORMED(path, `"${pool.cidr}" is not a prefix.`)];
  const problems: Problem[] = [];
  if (!cidr.masked) {
    const message = `${pool.cidr} has host bits set.`;
    problems.push(at.POOL_CIDR_UNMASKED(path, message, `Write ${formatCidr(cidr)}.`));
  }
  if (LINK_LOCAL.some((range) => overlaps(range, cidr))) {
    problems.push(at.POOL_CIDR_LINK_LOCAL(path, `${pool.cidr} lies in link-local addresses.`));
  }
  return [...problems, ...blockProblems(pool, cidr)];
}

function blockProblems(pool: PoolShape, cidr: Cidr): Problem[] {
  const v4 = cidr.family === V4;
  const block = pool.blockSize ?? defaultBlockSize(cidr);
  const [least, most] = v4 ? [20, 32] : [116, 128];
  if (block < least || block > most) {
    const message = `The block size of an ${cidr.family.name} pool is ${least} to ${most}, not ${block}.`;
    return [at.POOL_BLOCK_SIZE(`${pool.path}.blockSize`, message)];
  }
  // A pool that hands out nothing may be of any size.
  if (cidr.length > block && !pool.disabled) {
    return [at.POOL_TOO_SMALL(`${pool.path}.cidr`, `${pool.cidr} is smaller than one block of /${block}.`)];
  }
  return [];
}

function defaultBlockSize(cidr: Cidr): number {
  return cidr.family === V4 ? 26 : 122;
}

/** What is wrong between pools: each is compared with those before it. */
export function poolSetProblems(pools: readonly PoolShape[]): Problem[] {
  return pools.flatMap((pool, index) => pools.slice(0, index).flatMap((other) => pairProblems(pool, other)));
}

function pairProblems(pool: PoolShape, other: PoolShape): Problem[] {
  const problems: Problem[] = [];
  const [a, b] = [parseCidr(pool.cidr), parseCidr(other.cidr)];
  if (a && b && overlaps(a, b)) {
    problems.push(at.POOLS_OVERLAP(`${pool.path}.cidr`, `${pool.cidr} overlaps ${other.cidr}.`));
  }
  if (pool.name !== undefined && pool.name === other.name) {
    problems.push(at.POOL_NAME_TWICE(`${pool.path}.name`, `Two pools are named ${pool.name}.`));
  }
  return problems;
}

export function poolPlaceProblems(pool: PoolShape, podCidrs: readonly string[] | undefined): Problem[] {
  const cidr = parseCidr(pool.cidr);
  if (!cidr || !podCidrs || podCidrs.length === 0) return [];
  const inside = podCidrs.some((text) => {
    const whole = parseCidr(text);
    return whole !== undefined && whole.length <= cidr.length && overlaps(whole, cidr);
  });
  if (inside) return [];
  const message = `${pool.cidr} lies outside the cluster's pod prefixes ${podCidrs.join(", ")}.`;
  return [at.POOL_OUTSIDE_CLUSTER(`${pool.path}.cidr`, message)];
}

export function ipipFamilyProblems(pool: PoolShape, field: string): Problem[] {
  const cidr = parseCidr(pool.cidr);
  if (!cidr || cidr.family === V4) return [];
  return [at.POOL_IPIP_IPV6(`${pool.path}.${field}`, `${pool.cidr} is an IPv6 pool, which IPIP cannot carry.`)];
}

/** Rules of the use LoadBalancer, the same for both places a pool is written. */
export function loadBalancerProblems(
  path: string,
  pool: { allowedUses?: readonly string[]; encapsulated: boolean; nodeSelector?: string; disableBGPExport?: boolean },
): Problem[] {
  if (!pool.allowedUses?.includes("LoadBalancer")) return [];
  const say = (field: string, message: string) => at.POOL_LOAD_BALANCER(`${path}.${field}`, message);
  return [
    ...(pool.allowedUses.length > 1 ? [say("allowedUses", "LoadBalancer cannot be combined with another use.")] : []),
    ...(pool.encapsulated ? [say("encapsulation", "A pool for load balancers has no encapsulation.")] : []),
    ...(pool.nodeSelector !== undefined && pool.nodeSelector.trim() !== "all()"
      ? [say("nodeSelector", "A pool for load balancers is for all nodes.")]
      : []),
    ...(pool.disableBGPExport ? [say("disableBGPExport", "A pool for load balancers must be announced.")] : []),
  ];
}
