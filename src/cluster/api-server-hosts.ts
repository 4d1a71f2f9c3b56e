import { lookup } from "node:dns/promises";

/** Names or addresses of the API server in the environment of a pod: the endpoint map's host, and the one the orchestrator gives every pod. */
export function apiServerNames(env: Readonly<Record<string, string | undefined>>): string[] {
  return [env["ORCHESTRATOR_SERVICE_HOST"], env["KUBERNETES_SERVICE_HOST"]].flatMap((host) => host || []);
}

/** Their addresses. A name that does not resolve now is left out: the request to the API server that needs it fails as well. */
export async function resolveHosts(names: readonly string[]): Promise<string[]> {
  const found = await Promise.allSettled(names.map((name) => lookup(name, { all: true })));
  return found.flatMap((one) => (one.status === "fulfilled" ? one.value.map(({ address }) => address) : [])).sort();
}
