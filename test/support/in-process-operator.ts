import type { Transport } from "../../src/api/transport.ts";
import type { ApiServer } from "../../src/apiserver/server.ts";
import { listenOn } from "../../src/cluster/program.ts";
import { silentLog } from "../../src/kit/log.ts";
import { operatorProgram } from "../../src/operator/program.ts";
import { isWrite, OPERATOR_ACCOUNT } from "./operator-proxy.ts";

/** An operator in this process, outside the cluster's pods, that counts what it does. */
export interface InProcessOperator {
  /** Requests that would change something, as `METHOD path`; leases left out. */
  readonly writes: string[];
  /** How often it has looked at each part. */
  looks(): Promise<Record<string, number>>;
  stop(): Promise<void>;
}

/** What it asks for; it gets a free one. */
const METRICS_PORT = 9441;

export function startInProcessOperator(server: ApiServer, env: Record<string, string> = {}): InProcessOperator {
  const real = server.transport(OPERATOR_ACCOUNT);
  const writes: string[] = [];
  const counting: Transport = {
    request(request) {
      if (isWrite(request)) writes.push(`${request.method} ${request.path}`);
      return real.request(request);
    },
    close: () => {},
  };
  const stopping = new AbortController();
  let listening: (url: string) => void = () => {};
  const url = new Promise<string>((resolve) => {
    listening = resolve;
  });
  const running = operatorProgram({
    env: { NAMESPACE: "vendor-operator", METRICS_PORT: String(METRICS_PORT), ...env },
    transport: () => counting,
    signal: stopping.signal,
    log: silentLog,
    async listen(listener, port) {
      const address = await listenOn(listener, { host: "127.0.0.1", port: 0 });
      stopping.signal.addEventListener("abort", () => listener.close());
      if (port === METRICS_PORT) listening(`http://127.0.0.1:${address.port}`);
      return address;
    },
  });
  return {
    writes,
    async looks() {
      const text = await (await fetch(`${await url}/metrics`)).text();
      const found: Record<string, number> = {};
      for (const [, labels = "", count] of text.matchAll(/^vendor_operator_reconciles_total\{([^}]*)\} (\d+)$/gm)) {
        const part = /part="([^"]+)"/.exec(labels)?.[1] ?? "";
        found[part] = (found[part] ?? 0) + Number(count);
      }
      return found;
    },
    async stop() {
      stopping.abort();
      await running.catch((error: unknown) => {
        if (!(error instanceof Error && error.name === "AbortError")) throw error;
      });
    },
  };
}
