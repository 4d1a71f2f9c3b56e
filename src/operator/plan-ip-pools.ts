import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../api/object.ts";
import { withFix } from "../api/protocol/status-message.ts";
import type { StatusReason } from "../api/protocol/status-reasons.ts";
import type { IPPool } from "../api/resources/ip-pool.ts";
import { ipPoolUpdateProblems } from "../api/validation/ip-pool.ts";
import { overlaps, parseCidr } from "../kit/ip.ts";
import { ownLabels } from "./render/metadata.ts";

type Pool = IPPool & KubeObject;

/** A pool of another owner that is equal to the desired one: kept when the installation is removed. */
export const ADOPTED = "operator.vendor.io/adopted";

export interface PoolsPlan {
  /** Pools to apply, each under the name it has or shall have. */
  apply: Pool[];
  /** Pools of ours the installation no longer lists: no new addresses first, gone when none is in use. */
  retire: Pool[];
  refusals: { reason: StatusReason; message: string }[];
}

/** What to do with the actual pools, given the desired ones. A pool of another owner is never taken over. */
export function planIpPools(wanted: readonly Pool[], live: readonly Pool[]): PoolsPlan {
  const plan: PoolsPlan = { apply: [], retire: [], refusals: [] };
  const claimed = new Set<string>();
  for (const pool of wanted) {
    const found = counterpart(pool, live);
    if (!found) plan.apply.push(pool);
    else {
      claimed.add(found.metadata.name);
      settle(pool, found, plan);
    }
  }
  plan.refusals.push(...overlapRefusals(wanted, live, claimed));
  plan.retire = live.filter((pool) => isOurs(pool) && !claimed.has(pool.metadata.name));
  return plan;
}

/** The pool of that name, or else the one with that prefix: a pool's prefix is what it is. */
function counterpart(wanted: Pool, live: readonly Pool[]): Pool | undefined {
  const named = live.find(({ metadata }) => metadata.name === wanted.metadata.name);
  return named ?? live.find(({ spec }) => spec.cidr === wanted.spec.cidr);
}

function settle(wanted: Pool, found: Pool, plan: PoolsPlan): void {
  const name = found.metadata.name;
  const renamed: Pool = { ...wanted, metadata: { ...wanted.metadata, name } };
  if (!isOurs(found)) {
    if (!isSame(renamed, found)) plan.refusals.push(foreign(wanted, found));
    else plan.apply.push(adopted(renamed));
    return;
  }
  const [problem] = ipPoolUpdateProblems(found, wanted);
  if (problem) {
    const message = withFix(`IPPool ${name}: ${problem.message}`, `${problem.fix} (vendorctl explain ${problem.code})`);
    plan.refusals.push({ reason: "PoolFieldImmutable", message });
  } else plan.apply.push(found.metadata.annotations?.[ADOPTED] ? adopted(renamed) : renamed);
}

function adopted(pool: Pool): Pool {
  return { ...pool, metadata: { ...pool.metadata, annotations: { ...pool.metadata.annotations, [ADOPTED]: "true" } } };
}

function foreign(wanted: Pool, found: Pool): { reason: StatusReason; message: string } {
  return {
    reason: "PoolOfAnother",
    message: withFix(
      `IPPool ${found.metadata.name} (${found.spec.cidr}) was not created by the operator and differs from pool ${wanted.spec.cidr} of the Installation.`,
      `make the two equal, remove the pool from spec.vendorNetwork.ipPools, or delete it: kubectl delete ippools.crd.vendor.io ${found.metadata.name}`,
    ),
  };
}

/** A prefix is given out by one pool. */
function overlapRefusals(wanted: readonly Pool[], live: readonly Pool[], claimed: ReadonlySet<string>) {
  return wanted.flatMap((pool) =>
    live
      .filter((other) => !claimed.has(other.metadata.name) && !isOurs(other) && sharesAddresses(pool, other))
      .map((other) => foreign(pool, other)),
  );
}

function sharesAddresses(a: Pool, b: Pool): boolean {
  const [left, right] = [parseCidr(a.spec.cidr), parseCidr(b.spec.cidr)];
  return left !== undefined && right !== undefined && overlaps(left, right);
}

export function isOurs({ metadata }: KubeObject): boolean {
  return Object.entries(ownLabels("ippools")).every(([key, value]) => metadata.labels?.[key] === value);
}

/** What a pool is when a field is left out. */
const USUAL: Partial<IPPool["spec"]> = {
  vxlanMode: "Never",
  ipipMode: "Never",
  natOutgoing: false,
  disabled: false,
  disableBGPExport: false,
  nodeSelector: "all()",
  allowedUses: ["Workload", "Tunnel"],
  assignmentMode: "Automatic",
};

function isSame(a: Pool, b: Pool): boolean {
  return isDeepStrictEqual(meaning(a), meaning(b));
}

function meaning({ spec }: Pool): unknown {
  const blockSize = spec.cidr.includes(":") ? 122 : 26;
  const full = { ...USUAL, blockSize, ...spec };
  return { ...full, allowedUses: [...(full.allowedUses ?? [])].sort() };
}
