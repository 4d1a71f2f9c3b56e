import { matchesExpression, parseSelectorExpression } from "../api/schema/selector-expression.ts";
import { contains, parseAddress, parseCidr } from "../kit/ip.ts";
import type { Pool } from "./ipam-kinds.ts";

type Use = "Workload" | "Tunnel" | "LoadBalancer";

/** Whether new addresses may be taken from a pool for this use. */
export function mayUse(pool: Pool, use: Use): boolean {
  return !pool.spec.disabled && !pool.metadata.deletionTimestamp && isFor(pool, use);
}

/** Without a word of its own a pool is for pods and tunnels. */
export function isFor({ spec: { allowedUses } }: Pool, use: Use): boolean {
  if (allowedUses === undefined || allowedUses.length === 0) return use !== "LoadBalancer";
  return allowedUses.includes(use);
}

/** No selector selects everything; one that cannot be read, nothing. */
export function selects(selector: string | undefined, labels: Readonly<Record<string, string>>): boolean {
  if (!selector) return true;
  const parsed = parseSelectorExpression(selector);
  return "expression" in parsed && matchesExpression(parsed.expression, labels);
}

export function poolOf(pools: readonly Pool[], address: string): Pool | undefined {
  const parsed = parseAddress(address);
  return pools.find(({ spec }) => {
    const cidr = parseCidr(spec.cidr);
    return parsed !== undefined && cidr !== undefined && contains(cidr, parsed);
  });
}
