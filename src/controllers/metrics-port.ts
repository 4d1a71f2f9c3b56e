import type { Server } from "node:http";
import type { ProgramContext } from "../cluster/program.ts";
import { metricsServer } from "../kit/health-server.ts";
import type { Metrics } from "../kit/metrics.ts";

/** Serves metrics on the port the settings name, and moves when they do. 0 is off. */
export interface MetricsPort {
  /** What to print on the port health is answered on: nothing unless it is that one. */
  alongside(): string;
  use(port: number): void;
  close(): void;
}

export function metricsPort(
  world: ProgramContext,
  metrics: Metrics,
  { healthHost, healthPort }: { healthHost: string; healthPort: number },
): MetricsPort {
  let port = healthPort;
  let server: Server | undefined;
  const close = () => {
    server?.close();
    server?.closeAllConnections();
    server = undefined;
  };
  return {
    alongside: () => (port === healthPort ? metrics.text() : ""),
    use(wanted) {
      if (wanted === port) return;
      close();
      port = wanted;
      if (port === 0 || port === healthPort) return;
      server = metricsServer(() => metrics.text(), world.log);
      world
        .listen(server, port, healthHost)
        .catch((error: unknown) => world.log.error({ port, error }, "cannot serve metrics"));
    },
    close,
  };
}
