import type { Server } from "node:http";
import type { ServicePort } from "../calc/model.ts";
import { httpFront } from "../kit/http-front.ts";
import type { Log } from "../kit/log.ts";

/** Makes a server listen on a port of the node; rejects where it cannot. A test, or the embedded cluster, listens in a namespace. */
export type ListenOnNode = (server: Server, port: number) => Promise<void>;

export interface HealthCheckedService {
  namespace: string;
  name: string;
  /** Ready backends on this node. */
  localEndpoints: number;
}

/** Services whose load balancers ask this node whether to send to it, by the port they ask on. */
export function healthCheckedServices(rows: Iterable<ServicePort>): Map<number, HealthCheckedService> {
  const found = new Map<number, HealthCheckedService>();
  for (const { id, healthCheckNodePort, healthCheckBackends } of rows) {
    if (healthCheckNodePort === null) continue;
    const [namespace = "", rest = ""] = id.split("/");
    const name = rest.split(":")[0] ?? "";
    // Both families of a service are the same pods.
    const known = found.get(healthCheckNodePort)?.localEndpoints ?? 0;
    found.set(healthCheckNodePort, { namespace, name, localEndpoints: Math.max(known, healthCheckBackends) });
  }
  return found;
}

export interface HealthCheckPortsOptions {
  listen: ListenOnNode;
  /** Whether kube-proxy or eBPF serves Services on this node. */
  healthy(): boolean;
  log: Log;
}

/**
 * Answers load balancers on the health-check node ports: 200 where the service has a ready backend on this node, 503 where it has none, and
 * how many there are. A port that another process has is retried at every change and every `update`.
 */
export class HealthCheckPorts {
  readonly #options: HealthCheckPortsOptions;
  readonly #servers = new Map<number, Server>();
  readonly #refused = new Map<number, string>();
  #services = new Map<number, HealthCheckedService>();
  #turn: Promise<void> = Promise.resolve();

  constructor(options: HealthCheckPortsOptions) {
    this.#options = options;
  }

  /** Resolves when ports are open and closed as the services want it. */
  update(services: Map<number, HealthCheckedService>): Promise<void> {
    this.#services = services;
    this.#turn = this.#turn.then(() => this.#adjust());
    return this.#turn;
  }

  close(): Promise<void> {
    return this.update(new Map());
  }

  async #adjust(): Promise<void> {
    for (const [port, server] of this.#servers) {
      if (this.#services.has(port)) continue;
      this.#servers.delete(port);
      await closed(server);
    }
    for (const port of this.#services.keys()) if (!this.#servers.has(port)) await this.#open(port);
    for (const port of this.#refused.keys()) if (!this.#services.has(port)) this.#refused.delete(port);
  }

  async #open(port: number): Promise<void> {
    const server = this.#server(port);
    try {
      await this.#options.listen(server, port);
      this.#servers.set(port, server);
      this.#refused.delete(port);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      if (this.#refused.get(port) !== why)
        this.#options.log.warn({ port, error }, "cannot answer on a health-check port");
      this.#refused.set(port, why);
    }
  }

  #server(port: number): Server {
    const { healthy, log } = this.#options;
    const answer = () => {
      const { namespace = "", name = "", localEndpoints = 0 } = this.#services.get(port) ?? {};
      const serviceProxyHealthy = healthy();
      return {
        status: localEndpoints > 0 && serviceProxyHealthy ? 200 : 503,
        type: "application/json",
        headers: { "x-load-balancing-endpoint-weight": String(localEndpoints) },
        body: JSON.stringify({ service: { namespace, name }, localEndpoints, serviceProxyHealthy }),
      };
    };
    return httpFront({ answer, log });
  }
}

/** Not waiting for those who keep their connection open. */
export async function closed(server: Server): Promise<void> {
  const gone = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await gone;
}
