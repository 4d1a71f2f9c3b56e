import { lookup } from "node:dns/promises";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface ApiAddress {
  host: string;
  port: number;
}

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Where a pod may reach the API server, best first: the address in the endpoint map, then that of its Service. `map` is the endpoint map as it
 * is mounted now, which wins over the variables that the container had from it when it started; undefined where none is mounted.
 */
export function apiServerAddresses(env: Variables, map: Variables | undefined): ApiAddress[] {
  const chosen = addressIn(map ?? env, "ORCHESTRATOR") ?? (map && addressIn(map, "KUBERNETES"));
  const service = addressIn(env, "KUBERNETES");
  return [chosen, service].flatMap((address) => address ?? []);
}

function addressIn(variables: Variables, prefix: "ORCHESTRATOR" | "KUBERNETES"): ApiAddress | undefined {
  const host = variables[`${prefix}_SERVICE_HOST`]?.trim();
  const port = Number(variables[`${prefix}_SERVICE_PORT`] ?? HTTPS);
  return host && Number.isInteger(port) ? { host, port } : undefined;
}

const HTTPS = 443;

/** The keys of a mounted ConfigMap, as its files are at this moment; none where there is no such map. */
export function mountedKeys(directory: string): Record<string, string> {
  try {
    // The kubelet keeps the files in a hidden directory, and a link to each next to it.
    const names = readdirSync(directory).filter((name) => !name.startsWith("."));
    return Object.fromEntries(names.map((name) => [name, readFileSync(join(directory, name), "utf8")]));
  } catch {
    return {};
  }
}

/** Names or addresses of the API server in the environment of a pod: the endpoint map's host, and the one the orchestrator gives every pod. */
export function apiServerNames(env: Variables): string[] {
  return [env["ORCHESTRATOR_SERVICE_HOST"], env["KUBERNETES_SERVICE_HOST"]].flatMap((host) => host || []);
}

/** Their addresses. A name that does not resolve now is left out: the request to the API server that needs it fails as well. */
export async function resolveHosts(names: readonly string[]): Promise<string[]> {
  const found = await Promise.allSettled(names.map((name) => lookup(name, { all: true })));
  return found.flatMap((one) => (one.status === "fulfilled" ? one.value.map(({ address }) => address) : [])).sort();
}
