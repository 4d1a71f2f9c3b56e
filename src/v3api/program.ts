import type { Server } from "node:https";
import { Translator } from "../api/resources/v3-translate.ts";
import { parseVersion } from "../api/tables/version.ts";
import { userBehindProxy } from "../apiserver/auth/authenticate.ts";
import { Documents } from "../apiserver/documents.ts";
import { contextOf, secureListener, type TlsTrust } from "../apiserver/http.ts";
import { Registry } from "../apiserver/registry.ts";
import { type Client, createClient } from "../cluster/client.ts";
import type { Program, ProgramContext } from "../cluster/program.ts";
import { backoffDelay } from "../kit/backoff.ts";
import { type Clock, sleep, systemClock } from "../kit/clock.ts";
import { CodedError } from "../kit/errors.ts";
import { programMetrics } from "../kit/process-metrics.ts";
import { Access } from "./access.ts";
import { apiServerMetrics } from "./apiserver-metrics.ts";
import { Backend } from "./backend.ts";
import { createBuiltIns } from "./built-ins.ts";
import { readV3ApiConfig } from "./config.ts";
import { Front } from "./front.ts";
import { Guards } from "./guards.ts";
import { v3Kinds } from "./kinds.ts";
import { missingDefinitions } from "./missing-definitions.ts";
import { TierAccess } from "./tier-access.ts";
import { readTrust } from "./trust.ts";
import { Warnings } from "./warnings.ts";

const RETRY = { initialMs: 200, maxMs: 10_000, jitter: 0.3 };
const RETRY_MS = 60_000;
/** What is being answered when a stop is asked for may take this long to end. */
const FAREWELL_MS = 5_000;

/** `vendor apiserver`: the aggregated API `vendor.io/v3`, a front over the stored resources of the main API server. */
export const apiServerProgram: Program = async (world) => {
  const { env, signal, log, clock = systemClock } = world;
  const config = readV3ApiConfig(env);
  const transport = world.transport();
  const client = createClient(transport, { userAgent: "vendor-apiserver" });
  try {
    const read = () => readTrust(client, env, signal);
    let trust = await untilDone(clock, world, "whom to trust", read);
    if (!trust) return;
    const state = { builtIn: false };
    const front = assemble(world, clock, config.version, new Backend(transport), () => state.builtIn);
    const server = secureListener(front, userBehindProxy, () => trust!);
    const address = await world.listen(server, config.port);
    log.info({ ...address, version: config.version }, "serving vendor.io/v3");
    const kept = keepTrust(clock, world, read, (next) => {
      if (JSON.stringify(next) === JSON.stringify(trust)) return;
      trust = next;
      server.setSecureContext(contextOf(next));
      log.info({}, "certificates or authorities have changed");
    });
    state.builtIn = (await untilDone(clock, world, "built-in tiers", () => builtIns(client, config.version))) ?? false;
    await kept;
    await closeGently(clock, server);
  } finally {
    transport.close();
  }
};

function assemble(
  world: ProgramContext,
  clock: Clock,
  version: string,
  backend: Backend,
  builtIn: () => boolean,
): Front {
  const kinds = v3Kinds(version);
  const metrics = programMetrics();
  const counts = apiServerMetrics(metrics);
  const access = new Access(backend, clock, () => counts.accessReviews.add());
  const registry = new Registry();
  registry.add(kinds.map(({ served }) => served));
  const { major = 0, minor = 0 } = parseVersion(version) ?? {};
  const documents = new Documents(
    registry,
    { major: String(major), minor: String(minor), gitVersion: version },
    () => ({ subresources: {}, foreign: [] }),
  );
  const parts = {
    kinds,
    backend,
    translator: new Translator(kinds, version),
    access,
    tiers: new TierAccess(access, kinds),
    guards: new Guards(backend, kinds),
    warnings: new Warnings(backend, kinds),
    now: () => new Date(clock.now()),
    stopping: world.signal,
  };
  const ready = {
    definitions: () => missingDefinitions(backend, kinds),
    "built-ins": () => (builtIn() ? undefined : "the built-in tiers do not exist yet"),
  };
  return new Front(parts, { documents, metrics, counts, ready });
}

async function builtIns(client: Client, version: string): Promise<true> {
  await createBuiltIns(client, v3Kinds(version));
  return true;
}

/** Tries until it works; undefined when a stop was asked for first. What only the user can mend ends the program. */
async function untilDone<T>(
  clock: Clock,
  { signal, log }: ProgramContext,
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
