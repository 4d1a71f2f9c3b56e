import type { ServiceBackend, ServicePort } from "../../../../calc/model.ts";

export type Policy = "Cluster" | "Local";

/** Who answers where, of one service port: what both modes of the proxy write down, each in its own words. */
export interface ServiceChoice {
  /** Asked on the cluster address. */
  inside: Policy;
  /** Asked on any other. */
  outside: Policy;
  backends: Readonly<Record<Policy, readonly ServiceBackend[]>>;
  /** Lists that are referenced and not empty. */
  inUse: readonly Policy[];
  /** Has addresses in addition to its cluster IP. */
  isExternal: boolean;
  /** There are backends, here or elsewhere. */
  reachable: boolean;
}

export function serviceChoice(row: ServicePort): ServiceChoice {
  const backends = { Cluster: row.clusterBackends, Local: row.localBackends };
  const isAskedFromOutside =
    row.externalAddresses.length > 0 || row.loadBalancerAddresses.length > 0 || row.nodePort !== null;
  const inside = row.internalLocal ? "Local" : "Cluster";
  const outside = row.externalLocal ? "Local" : "Cluster";
  // Pods and the node itself, asking an outside address, reach every backend: so that list is needed there in any case.
  const asked: Policy[] = isAskedFromOutside ? [inside, outside, "Cluster"] : [inside];
  return {
    inside,
    outside,
    backends,
    inUse: (["Cluster", "Local"] as const).filter((policy) => asked.includes(policy) && backends[policy].length > 0),
    isExternal: isAskedFromOutside,
    reachable: backends.Cluster.length > 0 || backends.Local.length > 0,
  };
}
