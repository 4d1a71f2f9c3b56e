import type { ServiceBackend, ServicePort } from "../../src/policy/model.ts";

export const TCP = 6;
export const UDP = 17;

/** A service with a cluster address, and what a story says is different. `backends` are `address:port`, as text. */
export function service(id: string, backends: readonly string[], change: Partial<ServicePort> = {}): ServicePort {
  return {
    id,
    protocol: TCP,
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
    clusterBackends: backends.map((backend) => backendOf(backend)),
    localBackends: [],
    anyBackends: backends.length > 0,
    ...change,
  };
}

export function backendOf(text: string, local = false): ServiceBackend {
  const [, address, port] = /^\[?([^\]]*?)\]?:(\d+)$/.exec(text)!;
  return { address: address!, port: Number(port), local, node: null };
}
