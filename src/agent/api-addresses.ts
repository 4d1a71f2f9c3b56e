import type { KubeObject } from "../api/object.ts";
import type { ApiAddress } from "../cluster/api-server-hosts.ts";

interface EndpointSlice extends KubeObject {
  endpoints?: { addresses?: string[]; conditions?: { ready?: boolean } }[];
  ports?: { name?: string; port?: number }[];
}

/** Where the API server itself listens, from the slices of its own service; ordered. */
export function apiAddresses(slices: readonly KubeObject[]): ApiAddress[] {
  const own = (slices as EndpointSlice[]).filter(
    ({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] === "kubernetes",
  );
  const found = own.flatMap(({ endpoints = [], ports = [] }) => {
    const port = (ports.find(({ name }) => name === "https") ?? ports[0])?.port;
    const hosts = endpoints
      .filter(({ conditions }) => conditions?.ready !== false)
      .flatMap((one) => one.addresses ?? []);
    return port === undefined ? [] : hosts.map((host) => ({ host, port }));
  });
  return found.sort((a, b) => (a.host < b.host ? -1 : 1));
}
