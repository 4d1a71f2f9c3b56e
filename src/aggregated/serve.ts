import type { Server } from "node:https";
import { userBehindProxy } from "../apiserver/auth/authenticate.ts";
import { contextOf, type Handler, secureListener, type TlsTrust } from "../apiserver/http.ts";
import type { Client } from "../cluster/client.ts";
import type { ProgramContext } from "../cluster/program.ts";
import { backoffDelay } from "../kit/backoff.ts";
import { type Clock, sleep, systemClock } from "../kit/clock.ts";
import { CodedError } from "../kit/errors.ts";
import { readTrust } from "./trust.ts";

const RETRY = { initialMs: 200, maxMs: 10_000, jitter: 0.3 };
const RETRY_MS = 60_000;
/** What is being answered when a stop is asked for may take this long to end. */
const FAREWELL_MS = 5_000;

export interface AggregatedApi {
  front: Handler;
  port: number;
  /** For the log: the group and version. */
  name: string;
  client: Client;
  /** What is to be done then; the API is ready when it is. */
  onceServed?(): Promise<void>;
}

/** Serves an aggregated API until a stop is asked for: whom to trust is read from the cluster first, and again every minute. */
export async function serveAggregated(world: ProgramContext, api: AggregatedApi): Promise<void> {
  const { env, signal, log, clock = systemClock } = world;
  const read = () => readTrust(api.client, env, signal);
  let trust = await untilDone(world, "whom to trust", read);
  if (!trust) return;
  const server = secureListener(api.front, userBehindProxy, () => trust!);
  const address = await world.listen(server, api.port);
  log.info({ ...address }, `serving ${api.name}`);
  const kept = keepTrust(clock, world, read, (next) => {
    if (JSON.stringify(next) === JSON.stringify(trust)) return;
    trust = next;
    server.setSecureContext(contextOf(next));
    log.info({}, "certificates or authorities have changed");
  });
  await api.onceServed?.();
  await kept;
  await closeGently(clock, server);
}

/** Tries until it works; undefined when a stop was asked for first. What only the user can mend ends the program. */
export async function untilDone<T>(
  { signal, log, clock = systemClock }: ProgramContext,
  what: string,
  attempt: () => Promise<T>,
): Promise<T | undefined> {
  for (let failures = 1; !signal.aborted; failures++) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof CodedError && error.exitCode !== 1) throw error;
      if (!signal.aborted) log.warn({ error, failures }, `${what}: failed, retrying`);
    }
    await sleep(clock, backoffDelay(RETRY, failures, Math.random()), signal);
  }
  return undefined;
}

/** Certificates are renewed and authorities replaced while we run. */
async function keepTrust(
  clock: Clock,
  { signal, log }: ProgramContext,
  read: () => Promise<TlsTrust>,
  apply: (trust: TlsTrust) => void,
): Promise<void> {
  while (!signal.aborted) {
    await sleep(clock, RETRY_MS, signal);
    if (signal.aborted) return;
    await read().then(apply, (error: unknown) =>
      log.warn({ error }, "keeping the certificates and authorities we have"),
    );
  }
}

/** Watches end by the same signal; requests in progress are answered. */
async function closeGently(clock: Clock, server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const cancel = clock.setTimeout(() => server.closeAllConnections(), FAREWELL_MS);
  server.closeIdleConnections();
  await closed;
  cancel();
}
