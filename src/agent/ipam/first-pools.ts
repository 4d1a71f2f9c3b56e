import { ipPoolProblems } from "../../api/validation/ip-pool.ts";
import type { Client } from "../../cluster/client.ts";
import { isAlreadyExists } from "../../cluster/failures.ts";
import type { Pool } from "../../ipam/ipam-kinds.ts";
import { parseCidr, V4, V6 } from "../../kit/ip.ts";
import { flag, number, oneOf } from "../env-values.ts";
import { errors } from "../errors.ts";
import { IP_POOLS, typeOf } from "../stored-kinds.ts";

type Family = 4 | 6;
type Suffix = "CIDR" | "BLOCK_SIZE" | "VXLAN" | "NAT_OUTGOING" | "NODE_SELECTOR";
type PoolVariable<F extends Family> = `IPV${F}POOL_${Suffix}` | (F extends 4 ? typeof IPIP_VARIABLE : never);

const IPIP_VARIABLE = "IPV4POOL_IPIP";
const MODES = ["Never", "Always", "CrossSubnet"] as const;
/** As the operator's. */
const BLOCK_SIZE = { 4: 26, 6: 122 } as const;

export function poolVariables<F extends Family>(family: F): Record<PoolVariable<F>, string> {
  const text: Record<Suffix, string> = {
    CIDR: `IPv${family} prefix of the first pool (default: no pool is created)`,
    BLOCK_SIZE: `prefix length of the blocks of that pool (default: ${BLOCK_SIZE[family]})`,
    VXLAN:
      "when its packets travel in VXLAN: Always, CrossSubnet or Never (default: Always; Never without the backend vxlan)",
    NAT_OUTGOING: `true: packets that leave the pools take the node's address (default: ${family === 4})`,
    NODE_SELECTOR: "nodes that take addresses from it (default: all())",
  };
  const entries = Object.entries(text).map(([suffix, says]) => [`IPV${family}POOL_${suffix}`, says]);
  if (family === 4) {
    const says = "when its packets travel in IPIP, instead of VXLAN: Always, CrossSubnet or Never (default: Never)";
    entries.push([IPIP_VARIABLE, says]);
  }
  return Object.fromEntries(entries) as Record<PoolVariable<F>, string>;
}

/** The pools that the variables of plain manifests describe; the operator creates pools itself. They are checked as the API checks a pool: the API of plain manifests is the CRD alone. */
export function readFirstPools(
  env: Readonly<Record<string, string | undefined>>,
  { vxlan }: { vxlan: boolean },
): Pool[] {
  return ([4, 6] as const).flatMap((family) => {
    const named = <S extends Suffix>(suffix: S) => `IPV${family}POOL_${suffix}` as const;
    const cidr = env[named("CIDR")];
    const blockSize = number(env, named("BLOCK_SIZE"), BLOCK_SIZE[family], 128);
    const ipipMode = family === 4 ? oneOf(env, IPIP_VARIABLE, MODES, "Never") : "Never";
    const vxlanMode = oneOf(env, named("VXLAN"), MODES, vxlan && ipipMode === "Never" ? "Always" : "Never");
    const natOutgoing = flag(env, named("NAT_OUTGOING"), family === 4);
    const nodeSelector = env[named("NODE_SELECTOR")] || "all()";
    if (!cidr) return [];
    if (parseCidr(cidr)?.family !== (family === 4 ? V4 : V6))
      throw errors.AGENT_ENV(named("CIDR"), cidr, `an IPv${family} prefix`);
    const spec = { cidr, blockSize, vxlanMode, ipipMode, natOutgoing, nodeSelector } as const;
    const pool = { ...typeOf(IP_POOLS), metadata: { name: `default-ipv${family}-ippool` }, spec } as Pool;
    const [problem] = ipPoolProblems(pool);
    if (problem) throw errors.AGENT_FIRST_POOL(`IPV${family}POOL_*`, problem.message);
    return [pool];
  });
}

/**
 * Creates each pool whose family has none. A pool that is there, whatever its settings, is left as it is: people change pools, and another
 * agent may have been faster.
 */
export async function ensureFirstPools(
  client: Client,
  pools: readonly Pool[],
  existing: readonly Pool[],
): Promise<string[]> {
  const families = new Set(existing.map(({ spec }) => parseCidr(spec.cidr)?.family));
  const created: string[] = [];
  for (const pool of pools) {
    if (families.has(parseCidr(pool.spec.cidr)?.family)) continue;
    try {
      await client.create(IP_POOLS, pool);
      created.push(pool.metadata.name);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }
  return created;
}
