import type { Pool } from "../../ipam/ipam-kinds.ts";
import { isFor, poolOf } from "../../ipam/pools.ts";
import type { ServiceObject } from "../orchestrator-objects.ts";

type Ingress = NonNullable<NonNullable<NonNullable<ServiceObject["status"]>["loadBalancer"]>["ingress"]>[number];

export function ingressOf({ status }: ServiceObject): readonly Ingress[] {
  return status?.loadBalancer?.ingress ?? [];
}

/** What the status has that is from no pool of ours, and never was: another controller's. */
export function foreignIngress(
  service: ServiceObject,
  pools: readonly Pool[],
  allocated: ReadonlySet<string>,
): string[] {
  const ours = pools.filter((pool) => isFor(pool, "LoadBalancer"));
  return ingressOf(service).flatMap(({ ip, ...rest }) => {
    const isOurs = ip !== undefined && (allocated.has(ip) || poolOf(ours, ip) !== undefined);
    return isOurs ? [] : [ip ?? String((rest as { hostname?: string }).hostname)];
  });
}

/**
 * To send as a merge patch of `services/status`; undefined where the status has these addresses, in this order. The version makes it a
 * compare-and-swap: another controller may write there.
 */
export function ingressPatch(service: ServiceObject, addresses: readonly string[]): object | undefined {
  const present = ingressOf(service);
  if (present.length === addresses.length && present.every(({ ip }, at) => ip === addresses[at])) return undefined;
  const ingress = addresses.map((ip) => present.find((one) => one.ip === ip) ?? { ip });
  const { resourceVersion } = service.metadata;
  return { metadata: { resourceVersion }, status: { loadBalancer: { ingress: ingress.length > 0 ? ingress : null } } };
}
