import type { ServicePort } from "../model.ts";

/** One port of a service with a cluster address, without a rule, and what a story says is different. Somebody answers where it names backends. */
export function plainServicePort(change: Partial<ServicePort> = {}): ServicePort {
  const { clusterBackends = [] } = change;
  return {
    id: "shop/web:http/tcp/4",
    protocol: 6,
    family: 4,
    clusterAddress: "10.96.0.10",
    port: 80,
    externalAddresses: [],
    loadBalancerAddresses: [],
    sourceRanges: null,
    nodePort: null,
    healthCheckNodePort: null,
    healthCheckBackends: 0,
    affinitySeconds: 0,
    internalLocal: false,
    externalLocal: false,
    clusterBackends,
    localBackends: [],
    anyBackends: clusterBackends.length > 0,
    ...change,
  };
}
