import type { ServiceBackend, ServicePort } from "../../src/calc/model.ts";
import { plainServicePort } from "../../src/calc/testing/service-port.ts";

export const TCP = 6;
export const UDP = 17;

/** A service with a cluster address, and what a story says is different. `backends` are `address:port`, as text. */
export function service(id: string, backends: readonly string[], change: Partial<ServicePort> = {}): ServicePort {
  return plainServicePort({ id, clusterBackends: backends.map((backend) => backendOf(backend)), ...change });
}

export function backendOf(text: string, local = false): ServiceBackend {
  const [, address, port] = /^\[?([^\]]*?)\]?:(\d+)$/.exec(text)!;
  return { address: address!, port: Number(port), local, node: null };
}
