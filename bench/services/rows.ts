import type { ServicePort } from "../../src/calc/model.ts";
import { SERVER } from "../pods/cluster.ts";
import { PORT } from "../pods/load.ts";

const BACKENDS = 4;

/**
 * Services of a large cluster, with four backends each. The one in the middle is the one that is asked: it has one backend, the pod that
 * serves. Where services are looked for one after the other it is found after half of them.
 */
export function serviceRows(count: number): ServicePort[] {
  return Array.from({ length: count }, (_, index) => serviceRow(index, index === measuredIndex(count)));
}

/** Another one, that is not there yet: what `change` makes of it is different each time. */
export function oneMore(change: number): ServicePort {
  const index = 60_000;
  return { ...serviceRow(index, false), clusterBackends: backendsOf(index + change) };
}

export function measuredAddress(count: number): string {
  return addressOf(measuredIndex(count));
}

function measuredIndex(count: number): number {
  return count >> 1;
}

function serviceRow(index: number, isMeasured: boolean): ServicePort {
  return {
    ...{ id: `default/s-${String(index).padStart(5, "0")}:web/tcp/4`, protocol: 6, family: 4 },
    ...{ clusterAddress: addressOf(index), port: PORT, externalAddresses: [], loadBalancerAddresses: [] },
    ...{ sourceRanges: null, nodePort: null, healthCheckNodePort: null, healthCheckBackends: 0, affinitySeconds: 0 },
    ...{ internalLocal: false, externalLocal: false, localBackends: [], anyBackends: true },
    clusterBackends: isMeasured
      ? [{ address: SERVER.address, port: PORT, local: true, node: null }]
      : backendsOf(index),
  };
}

function addressOf(index: number): string {
  return `10.${96 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
}

function backendsOf(index: number): ServicePort["clusterBackends"] {
  return Array.from({ length: BACKENDS }, (_, which) => {
    const address = `10.9.${64 + ((index >> 8) & 127)}.${index & 255}`;
    return { address, port: 8000 + which, local: false, node: null };
  });
}
