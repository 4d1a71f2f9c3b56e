import type { ServicePort } from "../../../../calc/model.ts";
import type { ConntrackEntry, ConntrackPort, ConntrackTuple } from "../../../../kernel/conntrack/conntrack-port.ts";

const UDP = 17;

/** Which backends there are behind what a client asks for. */
interface Frontends {
  /** By address and port. */
  at: ReadonlyMap<string, ReadonlySet<string>>;
  byNodePort: ReadonlyMap<number, ReadonlySet<string>>;
}

/**
 * Flows of UDP that the kernel would keep sending to a backend their service no longer has. Connections of TCP end with their backend; a
 * client of UDP that keeps its port would be sent there for ever. As kube-proxy does, every flow to the number of a node port is taken for one of
 * this node's: those that a pod has with another node, or with anybody outside, are deleted too, and lose what is under way.
 */
function staleEntries(flows: readonly ConntrackEntry[], { at, byNodePort }: Frontends): ConntrackTuple[] {
  return flows.flatMap(({ original, reply }) => {
    if (original.protocol !== UDP) return [];
    const answering = place(reply.source, reply.sourcePort);
    const asked = [
      at.get(place(original.destination, original.destinationPort)),
      byNodePort.get(original.destinationPort),
    ];
    return asked.some((backends) => backends && !backends.has(answering)) ? [original] : [];
  });
}

/** Deletes them; how many there were. */
export async function deleteStaleConntrack(conntrack: ConntrackPort, rows: Iterable<ServicePort>): Promise<number> {
  const frontends = frontendsOf(rows);
  if (frontends.at.size === 0) return 0;
  const stale = staleEntries(await conntrack.list(), frontends);
  return stale.filter((tuple) => conntrack.delete(tuple)).length;
}

/** A service without backends keeps its flows: there is nobody else to answer them. */
function frontendsOf(rows: Iterable<ServicePort>): Frontends {
  const at = new Map<string, ReadonlySet<string>>();
  const byNodePort = new Map<number, ReadonlySet<string>>();
  for (const row of rows) {
    const backends = new Set(
      [...row.clusterBackends, ...row.localBackends].map(({ address, port }) => place(address, port)),
    );
    if (row.protocol !== UDP || backends.size === 0) continue;
    const addresses = [row.clusterAddress ?? [], row.externalAddresses, row.loadBalancerAddresses].flat();
    for (const address of addresses) at.set(place(address, row.port), backends);
    if (row.nodePort !== null)
      byNodePort.set(row.nodePort, new Set([...(byNodePort.get(row.nodePort) ?? []), ...backends]));
  }
  return { at, byNodePort };
}

function place(address: string, port: number): string {
  return `${address} ${port}`;
}
