/** Which client stays with which backend, in the map of the programs. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ServicePort } from "../../calc/model.ts";
import { affinityKeyLayout, affinityLayout, frontendLayout } from "../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../kernel/bpf/bpf-port.ts";
import { kernelTime } from "../../kernel/kernel-time.ts";
import { addressBytes, addressText } from "../ebpf/net-bytes.ts";
import { frontendKey } from "../ebpf/services/service-rows.ts";
import type { Affinity } from "../kube-proxy/proxy-affinities.ts";
import { allBackends, socketText } from "../kube-proxy/proxy-names.ts";

export interface AffinityMaps {
  affinities: BpfMap;
  frontends: BpfMap;
  /** The node's addresses: to the programs its processes are one client without an address, to kube-proxy a client is its source address. */
  ownAddresses: readonly string[];
}

const OWN_CLIENT = "::";

const SECOND_NS = 1_000_000_000n;

/** Those that still hold. A client has one for backends of the node and one for all: the one it used last counts. */
export async function readAffinities(
  { affinities, frontends, ownAddresses }: AffinityMaps,
  services: Iterable<ServicePort>,
): Promise<Affinity[]> {
  const known = new Map([...services].flatMap((service) => numbered(frontends, service)));
  if (known.size === 0) return [];
  const now = kernelTime();
  const newest = new Map<string, Affinity & { last: bigint }>();
  for (const chunk of affinities.chunks()) {
    for (const [key, value] of chunk) {
      const { client, service: number } = affinityKeyLayout.read(key);
      const { address, port, lastUsed: last } = affinityLayout.read(value);
      const found = known.get(number);
      if (!found || now - last > BigInt(found.service.affinitySeconds) * SECOND_NS) continue;
      const backend = found.backends.get(socketText({ address: addressText(address), port }));
      const name = `${number} ${addressText(client)}`;
      if (!backend || (newest.get(name)?.last ?? -1n) > last) continue;
      newest.set(name, { service: found.service, client: addressText(client), backend, last });
    }
    await nextTurn();
  }
  return [...newest.values()].flatMap(({ service, client, backend }) => {
    const own = ownAddresses.filter((address) => address.includes(":") === (service.family === 6));
    return (client === OWN_CLIENT ? own : [client]).map((one) => ({ service, client: one, backend }));
  });
}

/** As if the clients had asked just now; what the programs have noted themselves is newer. */
export function writeAffinities(maps: AffinityMaps, noted: readonly Affinity[]): void {
  const { affinities, frontends, ownAddresses } = maps;
  for (const { service, client, backend } of noted) {
    const [[number] = []] = numbered(frontends, service);
    if (number === undefined) continue;
    const value = affinityLayout.write({
      ...{ address: addressBytes(backend.address), port: backend.port, pad: 0, pad2: 0 },
      lastUsed: kernelTime(),
    });
    for (const local of backend.local ? [0, 1] : [0]) {
      const from = ownAddresses.includes(client) ? OWN_CLIENT : client;
      const key = affinityKeyLayout.write({ client: addressBytes(from), service: number, local });
      if (!affinities.lookup(key)) affinities.update(key, value);
    }
  }
}

function numbered(frontends: BpfMap, service: ServicePort) {
  const { clusterAddress, port, protocol, affinitySeconds } = service;
  if (clusterAddress === null || affinitySeconds === 0) return [];
  const frontend = frontends.lookup(Buffer.from(frontendKey(clusterAddress, port, protocol), "latin1"));
  if (!frontend) return [];
  const backends = new Map(allBackends(service).map((backend) => [socketText(backend), backend]));
  return [[frontend.readUInt32LE(frontendLayout.at.service), { service, backends }] as const];
}
