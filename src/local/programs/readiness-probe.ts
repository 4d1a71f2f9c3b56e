import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Clock, sleep } from "../../kit/clock.ts";
import type { Container } from "../controllers/workload-types.ts";

interface HttpProbe {
  httpGet?: { path?: string; port: number | string; scheme?: "HTTP" | "HTTPS" };
  initialDelaySeconds?: number;
  periodSeconds?: number;
  timeoutSeconds?: number;
  successThreshold?: number;
  failureThreshold?: number;
}

/** Where to ask; `connect` where this process does not reach it by itself. */
interface ListenAddress {
  host: string;
  port: number;
  connect?: () => Socket;
}

export interface ReadinessOptions {
  container: Container;
  /** Where the container's port is answered; undefined while nothing listens. */
  addressOf(port: number): ListenAddress | undefined;
  report(ready: boolean): void;
  clock: Clock;
  signal: AbortSignal;
}

/** A container that is not ready yet is probed this often, so that a simulated rollout does not take as long as a real one. */
const IMPATIENT_MS = 100;

/** Reports whether the container is ready, whenever that changes, by its own probe. Without one it is ready as soon as it runs. */
export async function watchReadiness({ container, addressOf, report, clock, signal }: ReadinessOptions): Promise<void> {
  const probe = (container.readinessProbe ?? {}) as HttpProbe;
  const port = probe.httpGet && portNumber(container, probe.httpGet.port);
  if (!probe.httpGet || port === undefined) {
    report(true);
    return;
  }
  const periodMs = (probe.periodSeconds ?? 10) * 1000;
  let ready = false;
  let streak = 0;
  await sleep(clock, (probe.initialDelaySeconds ?? 0) * 1000, signal);
  while (!signal.aborted) {
    const address = addressOf(port);
    const well = address !== undefined && (await answersWell(probe, address, signal));
    if (signal.aborted) return;
    streak = well === ready ? 0 : streak + 1;
    if (streak >= ((well ? probe.successThreshold : probe.failureThreshold) ?? (well ? 1 : 3))) {
      ready = well;
      streak = 0;
      report(ready);
    }
    await sleep(clock, ready ? periodMs : Math.min(IMPATIENT_MS, periodMs), signal);
  }
}

export function portNumber(container: Container, port: number | string): number | undefined {
  if (typeof port === "number") return port;
  return /^\d+$/.test(port) ? Number(port) : container.ports?.find(({ name }) => name === port)?.containerPort;
}

/** A kubelet trusts any certificate here, and takes any answer from 200 to 399 for a yes. */
function answersWell(probe: HttpProbe, { host, port, connect }: ListenAddress, signal: AbortSignal): Promise<boolean> {
  const { path = "/", scheme = "HTTP" } = probe.httpGet ?? {};
  const insecure = { rejectUnauthorized: false };
  const start = scheme === "HTTPS" ? httpsRequest : httpRequest;
  return new Promise((resolve) => {
    const asking = start({
      host,
      port,
      path,
      // The whole answer is timed, not only how long a socket is silent: one that never connects is silent about that, too.
      signal: AbortSignal.any([signal, AbortSignal.timeout((probe.timeoutSeconds ?? 1) * 1000)]),
      ...(scheme === "HTTPS" && insecure),
      ...(connect
        ? { createConnection: () => (scheme === "HTTPS" ? connectTls({ socket: connect(), ...insecure }) : connect()) }
        : { agent: false }),
    });
    asking.once("response", (answer) => {
      answer.resume();
      resolve((answer.statusCode ?? 0) >= 200 && (answer.statusCode ?? 0) < 400);
    });
    asking.once("error", () => resolve(false));
    asking.once("close", () => resolve(false));
    asking.end();
  });
}
