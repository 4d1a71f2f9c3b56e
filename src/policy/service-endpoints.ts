import type { KubeObject } from "../api/object.ts";
import { formatAddress, parseAddress, V4 } from "../kit/ip.ts";
import type { ServiceEndpoint } from "./endpoint-selection.ts";

interface Slice {
  addressType?: string;
  endpoints?: SliceEndpoint[] | null;
  ports?: { name?: string | null; port?: number | null; protocol?: string | null }[] | null;
}

interface SliceEndpoint {
  addresses?: string[] | null;
  nodeName?: string | null;
  conditions?: { ready?: boolean | null; serving?: boolean | null; terminating?: boolean | null } | null;
  hints?: { forZones?: { name: string }[] | null; forNodes?: { name: string }[] | null } | null;
}

/** An endpoint before it is known which port is asked. */
type Unported = Omit<ServiceEndpoint, "port">;

/**
 * Who answers at each port of a service in one family, by `portKey`. An endpoint may be in several slices while they are rearranged: of
 * those that say the same address and port, the local one counts, then the one in better health, then the first slice by name.
 */
export function endpointsByPort(
  slices: readonly KubeObject[],
  family: 4 | 6,
  node: string,
): Map<string, ServiceEndpoint[]> {
  const ports = new Map<string, Map<string, ServiceEndpoint>>();
  for (const object of slices) {
    const slice = object as unknown as Slice;
    if (slice.addressType !== `IPv${family}`) continue;
    const endpoints = (slice.endpoints ?? []).flatMap((endpoint) => read(endpoint, family, node) ?? []);
    for (const { name, port, protocol } of slice.ports ?? []) {
      if (typeof port !== "number") continue;
      const key = portKey(name ?? "", protocol ?? "TCP");
      const found = ports.get(key) ?? new Map<string, ServiceEndpoint>();
      ports.set(key, found);
      for (const endpoint of endpoints) {
        const id = `${endpoint.address} ${port}`;
        const other = found.get(id);
        if (!other || standing(endpoint) > standing(other)) found.set(id, { ...endpoint, port });
      }
    }
  }
  return new Map([...ports].map(([key, found]) => [key, inOrder(found)]));
}

export function portKey(name: string, protocol: string): string {
  return `${name}/${protocol}`;
}

/** Only the first address is meant: the others, where an old writer gave some, are the same endpoint. */
function read(
  { addresses, nodeName, conditions, hints }: SliceEndpoint,
  family: 4 | 6,
  node: string,
): Unported | undefined {
  const address = parseAddress(addresses?.[0] ?? "");
  if (!address || (address.family === V4) !== (family === 4)) return undefined;
  return {
    address: formatAddress(address),
    local: nodeName === node,
    node: nodeName ?? null,
    ready: conditions?.ready ?? true,
    serving: conditions?.serving ?? true,
    terminating: conditions?.terminating ?? false,
    zoneHints: hints?.forZones?.map(({ name }) => name) ?? [],
    nodeHints: hints?.forNodes?.map(({ name }) => name) ?? [],
  };
}

function standing({ local, ready, serving }: Unported): number {
  return (local ? 4 : 0) + (ready ? 2 : 0) + (serving ? 1 : 0);
}

function inOrder(endpoints: ReadonlyMap<string, ServiceEndpoint>): ServiceEndpoint[] {
  return [...endpoints].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, endpoint]) => endpoint);
}
