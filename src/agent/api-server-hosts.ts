import { lookup } from "node:dns/promises";
import type { Env } from "./config.ts";

/**
 * Addresses of the API server as this agent's environment names it: the endpoint map's host and the one the orchestrator gives every pod.
 * A name that does not resolve now is left out: the request to the API server that needs it fails as well.
 */
export async function apiServerHosts(env: Env): Promise<string[]> {
  const hosts = [env["ORCHESTRATOR_SERVICE_HOST"], env["KUBERNETES_SERVICE_HOST"]].filter((host) => host !== undefined);
  const found = await Promise.allSettled(hosts.map((host) => lookup(host, { all: true })));
  return found.flatMap((one) => (one.status === "fulfilled" ? one.value.map(({ address }) => address) : [])).sort();
}
