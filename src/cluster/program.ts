import type { AddressInfo, Server } from "node:net";
import type { Transport } from "../api/transport.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import { type ApiAddress, apiServerAddresses, mountedKeys } from "./api-server-hosts.ts";
import { clusterEnv } from "./config.ts";
import { addressRoutes, failoverTransport } from "./failover-transport.ts";
import { httpsTransport } from "./https-transport.ts";
import { loadConnection } from "./kubeconfig.ts";

/**
 * Everything a program that runs in a cluster is given. In a pod it is made by `podContext`; the embedded cluster makes one per container,
 * so that the same program runs there inside the cluster's own process. A program therefore touches no process-wide state: no
 * `process.env`, no exit, no signals, no output but `log`.
 */
export interface ProgramContext {
  /** The container's environment: the only configuration there is. */
  env: Readonly<Record<string, string | undefined>>;
  /**
   * To the API server, by the rules of a pod: its service account, and `ORCHESTRATOR_SERVICE_*` before `KUBERNETES_SERVICE_*`. Where the
   * endpoint map is mounted, it is followed as it changes, and the Service is used while its address does not answer. `at`: only there.
   */
  transport(at?: ApiAddress): Transport;
  /** Aborted when the program is to stop. */
  signal: AbortSignal;
  log: Log;
  /** Default: the system's. */
  clock?: Clock;
  /**
   * Starts listening; in a pod on the port and address named, elsewhere on any free loopback port. Without an address, on every one of
   * the pod's. Says where. The world closes what listens when the program has ended; a program that must finish answers first closes
   * its server itself.
   */
  listen(server: Listener, port: number, host?: string): Promise<ListenAddress>;
}

/** A server of HTTP of either version, with TLS or without. */
export type Listener = Server & { closeAllConnections(): void };

export interface ListenAddress {
  host: string;
  port: number;
}

/** Resolves after a graceful stop. Throws a `CodedError` to end with its exit code, anything else to end with 1. */
export type Program = (world: ProgramContext) => Promise<void>;

/** Where a program answers health if its environment does not say: the platform's manifests name the pod's address where it is to be reached. */
export const LOOPBACK = "127.0.0.1";

/** The world of a real pod, or of a developer's shell with a kubeconfig. */
export function podContext(
  env: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
  log: Log,
): ProgramContext {
  return {
    env,
    signal,
    log,
    transport: (at) => podTransport(env, log, at),
    listen: (server, port, host) => listenOn(server, { port, ...(host !== undefined && { host }) }),
  };
}

function podTransport(env: ProgramContext["env"], log: Log, at: ApiAddress | undefined): Transport {
  const cluster = clusterEnv(env, false);
  const { endpointMapDir } = cluster;
  const open = ({ host, port }: ApiAddress) =>
    httpsTransport(loadConnection({}, { ...cluster, serviceHost: host, servicePort: String(port) }));
  if (at) return open(at);
  // Without a Service there is no pod, but a developer's shell with a kubeconfig.
  if (!endpointMapDir || !env["KUBERNETES_SERVICE_HOST"]) return httpsTransport(loadConnection({}, cluster));
  const addresses = () => apiServerAddresses(env, mountedKeys(endpointMapDir));
  return failoverTransport(() => addressRoutes(addresses(), open), log);
}

/** Without a host, on every address of both families. */
export function listenOn(server: Server, address: { host?: string; port: number }): Promise<ListenAddress> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(address, () => {
      server.off("error", reject);
      const { address: host, port } = server.address() as AddressInfo;
      resolve({ host, port });
    });
  });
}
