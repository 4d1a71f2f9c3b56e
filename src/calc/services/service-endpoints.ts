import type { KubeObject } from "../../api/object.ts";
import { specialAddress } from "../addresses/special-addresses.ts";
import { isV4, toAddress } from "../nets.ts";
import { orMake } from "../or-make.ts";
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

const NO_HINTS: readonly string[] = [];

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
    for (const { name, port, protocol } of slice.ports ?? []) {
      if (typeof port !== "number") continue;
      const found = orMake(ports, portKey(name ?? "", protocol ?? "TCP"), () => new Map<string, ServiceEndpoint>());
      for (const listed of slice.endpoints ?? []) {
        const endpoint = read(listed, port, node);
        if (!endpoint || isV4(endpoint.address) !== (family === 4)) continue;
        const id = `${endpoint.address} ${port}`;
        const other = found.get(id);
        if (!other || standing(endpoint) > standing(other)) found.set(id, endpoint);
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
  port: number,
  node: string,
): ServiceEndpoint | undefined {
  const address = toAddress(addresses?.[0] ?? "");
  // As Kubernetes' own validation: a Service must not lead to the node's loopback or its link.
  return address === undefined || specialAddress(address) !== undefined
    ? undefined
    : {
        address,
        port,
        local: nodeName === node,
        node: nodeName ?? null,
        ready: conditions?.ready ?? true,
        serving: conditions?.serving ?? true,
        terminating: conditions?.terminating ?? false,
        zoneHints: hints?.forZones?.map(({ name }) => name) ?? NO_HINTS,
        nodeHints: hints?.forNodes?.map(({ name }) => name) ?? NO_HINTS,
      };
}

function standing({ local, ready, serving }: ServiceEndpoint): number {
  return (local ? 4 : 0) + (ready ? 2 : 0) + (serving ? 1 : 0);
}

function inOrder(endpoints: ReadonlyMap<string, ServiceEndpoint>): ServiceEndpoint[] {
  return [...endpoints].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, endpoint]) => endpoint);
}
