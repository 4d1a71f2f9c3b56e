import type { IPPool } from "../resources/ip-pool.ts";
import {
  ipipFamilyProblems,
  loadBalancerProblems,
  type PoolShape,
  poolProblem,
  poolSetProblems,
  poolShapeProblems,
} from "./pools.ts";
import type { Problem } from "./problem.ts";
import { nameProblems, selectorProblems } from "./values.ts";

export function ipPoolProblems(pool: IPPool): Problem[] {
  const { spec } = pool;
  const ipip = isOn(spec.ipipMode);
  const vxlan = isOn(spec.vxlanMode);
  const shape = shapeOf(pool);
  return [
    ...nameProblems(pool.metadata.name, "metadata.name", { dots: true }),
    ...(shape.cidr === undefined ? [] : poolShapeProblems(shape)),
    ...(ipip && vxlan
      ? [poolProblem.POOL_TWO_OVERLAYS("spec.ipipMode", "A pool cannot travel in both VXLAN and IPIP.")]
      : []),
    ...(ipip ? ipipFamilyProblems(shape, "ipipMode") : []),
    ...loadBalancerProblems("spec", { ...spec, encapsulated: ipip || vxlan }),
    ...tunnelProblems(spec),
    ...selectorProblems(spec.nodeSelector, "spec.nodeSelector"),
    ...selectorProblems(spec.namespaceSelector, "spec.namespaceSelector"),
  ];
}

/** What is wrong between the pools of a cluster. */
export function ipPoolSetProblems(pools: readonly IPPool[]): Problem[] {
  return poolSetProblems(pools.map(shapeOf));
}

/** A pool's prefix and block size are for life; spelling out the default is no change. */
export function ipPoolUpdateProblems(old: IPPool, changed: IPPool): Problem[] {
  const usual = old.spec.cidr.includes(":") ? 122 : 26;
  const sizes = [old.spec.blockSize ?? usual, changed.spec.blockSize ?? usual];
  return [
    ...(old.spec.cidr === changed.spec.cidr ? [] : [immutable("cidr", old.spec.cidr, changed.spec.cidr)]),
    ...(sizes[0] === sizes[1] ? [] : [immutable("blockSize", sizes[0], sizes[1])]),
  ];
}

function immutable(field: string, from: unknown, to: unknown): Problem {
  return poolProblem.POOL_FIELD_IMMUTABLE(`spec.${field}`, `A pool's ${field} cannot change from ${from} to ${to}.`);
}

function tunnelProblems(spec: IPPool["spec"]): Problem[] {
  const tunnel = spec.allowedUses?.includes("Tunnel");
  if (!tunnel || !spec.namespaceSelector || spec.namespaceSelector.trim() === "all()") return [];
  const message = "A pool for tunnels cannot select namespaces.";
  return [poolProblem.POOL_TUNNEL_NAMESPACES("spec.namespaceSelector", message)];
}

function isOn(mode: string | undefined): boolean {
  return mode !== undefined && mode !== "Never";
}

function shapeOf(pool: IPPool): PoolShape {
  const { cidr, blockSize, disabled } = pool.spec;
  return { path: "spec", cidr, ...(blockSize === undefined ? {} : { blockSize }), disabled: disabled ?? false };
}
