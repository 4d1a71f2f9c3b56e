import type { ServicePort } from "../../../../calc/model.ts";
import type { ConntrackEntry, ConntrackPort, ConntrackTuple } from "../../../../kernel/conntrack/conntrack-port.ts";

const UDP = 17;

/**
 * Flows of UDP that the kernel would keep sending to a backend their service no longer has. Connections of TCP end with their backend; a
 * client of UDP that keeps its port would be sent there for ever.
 */
function staleEntries(
  flows: readonly ConntrackEntry[],
  rows: Iterable<ServicePort>,
  nodeAddresses: readonly string[],
): ConntrackTuple[] {
  const backendsAt = backendsByFrontend(rows, nodeAddresses);
  return flows.flatMap(({ original, reply }) => {
    if (original.protocol !== UDP) return [];
    const backends = backendsAt.get(place(original.destination, original.destinationPort));
    return backends && !backends.has(place(reply.source, reply.sourcePort)) ? [original] : [];
  });
}

/** Deletes them; how many there were. */
export async function deleteStaleConntrack(
  conntrack: ConntrackPort,
  rows: Iterable<ServicePort>,
  nodeAddresses: readonly string[],
): Promise<number> {
  const udp = [...rows].filter(({ protocol }) => protocol === UDP);
  if (udp.length === 0) return 0;
  const stale = staleEntries(await conntrack.list(), udp, nodeAddresses);
  return stale.filter((tuple) => conntrack.delete(tuple)).length;
}

function backendsByFrontend(
  rows: Iterable<ServicePort>,
  nodeAddresses: readonly string[],
): Map<string, ReadonlySet<string>> {
  const found = new Map<string, ReadonlySet<string>>();
  for (const row of rows) {
    if (row.protocol !== UDP) continue;
    const backends = new Set(
      [...row.clusterBackends, ...row.localBackends].map(({ address, port }) => place(address, port)),
    );
    const addresses = [row.clusterAddress ?? [], row.externalAddresses, row.loadBalancerAddresses].flat();
    for (const address of addresses) found.set(place(address, row.port), backends);
    if (row.nodePort === null) continue;
    const ofFamily = nodeAddresses.filter((address) => address.includes(":") === (row.family === 6));
    for (const address of ofFamily) found.set(place(address, row.nodePort), backends);
  }
  return found;
}

function place(address: string, port: number): string {
  return `${address} ${port}`;
}
