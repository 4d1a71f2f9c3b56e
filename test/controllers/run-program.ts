import type { Server } from "node:http";
import type { Transport } from "../../src/api/transport.ts";
import { type ListenAddress, listenOn } from "../../src/cluster/program.ts";
import { controllersProgram } from "../../src/controllers/program.ts";
import { silentLog } from "../../src/kit/log.ts";
import { eventually } from "./controllers-lab.ts";

/** One copy of the program, as a pod would run it, listening on loopback. */
export interface RunningCopy {
  ask(path: string, port?: number): Promise<{ status: number; text: string }>;
  stop(): Promise<void>;
}

const HEALTH_PORT = 9094;

export function runCopy(podName: string, transport: Transport, env: Record<string, string> = {}): RunningCopy {
  const stopping = new AbortController();
  const servers: Server[] = [];
  const addresses = new Map<number, ListenAddress>();
  const ended = controllersProgram({
    env: { POD_NAME: podName, NAMESPACE: "vendor-system", HEALTH_PORT: `${HEALTH_PORT}`, ...env },
    transport: () => transport,
    signal: stopping.signal,
    log: silentLog,
    async listen(server, port) {
      servers.push(server as Server);
      const address = await listenOn(server, { host: "127.0.0.1", port: 0 });
      addresses.set(port, address);
      return address;
    },
  });
  return {
    async ask(path, port = HEALTH_PORT) {
      const address = await eventually(
        () => addresses.get(port),
        (found) => found !== undefined,
      );
      const response = await fetch(`http://127.0.0.1:${address?.port}${path}`);
      return { status: response.status, text: await response.text() };
    },
    async stop() {
      stopping.abort();
      await ended;
      for (const server of servers) server.close();
    },
  };
}
