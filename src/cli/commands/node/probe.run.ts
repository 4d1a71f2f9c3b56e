import { measurePaths, type PathToMeasure } from "../../../agent/probe/measure-paths.ts";
import { PersistentProbe, type ProbeTarget, probeOnce } from "../../../agent/probe/probe-client.ts";
import { type ProbePorts, serveProbe } from "../../../agent/probe/probe-server.ts";
import { formatSnapshot, type TrafficSnapshot } from "../../../api/protocol/traffic-report.ts";
import { sleep, systemClock } from "../../../kit/clock.ts";
import { errors } from "../../errors.ts";
import type { CliContext } from "../../session.ts";

export async function serve(world: CliContext, ports: ProbePorts): Promise<void> {
  const server = await serveProbe(ports);
  world.out(`${JSON.stringify({ listening: server.ports })}\n`);
  await new Promise<void>((resolve) => {
    if (world.signal.aborted) resolve();
    else world.signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await server.close();
}

interface ConnectOptions {
  protocol: ProbeTarget["protocol"];
  attemptTimeout: number;
  count: number;
  every: number;
  keep?: true;
}

export async function connect(
  world: CliContext,
  targets: readonly { host: string; port: number }[],
  options: ConnectOptions,
): Promise<void> {
  const last = await Promise.all(targets.map((target) => follow(world, target, options)));
  if (!last.every(Boolean)) throw errors.PROBE_UNANSWERED(last.filter((ok) => !ok).length, targets.length);
}

/** How the last attempt went. */
async function follow(
  world: CliContext,
  at: { host: string; port: number },
  options: ConnectOptions,
): Promise<boolean> {
  const { protocol, attemptTimeout, count, every, keep } = options;
  const target = { ...at, protocol };
  const kept = keep && new PersistentProbe(target, attemptTimeout);
  let ok = false;
  for (let i = 0; (count === 0 || i < count) && !world.signal.aborted; i++) {
    if (i > 0) await sleep(systemClock, every, world.signal);
    const result = kept ? await kept.request() : await probeOnce(target, attemptTimeout);
    ok = result.ok;
    world.out(`${JSON.stringify(result)}\n`);
  }
  if (kept) kept.close();
  return ok;
}

/** Until stopped, and once more then. */
export async function measure(
  world: CliContext,
  ways: readonly PathToMeasure[],
  options: { every: number; churn: number; report: number },
): Promise<void> {
  const tell = (snapshot: TrafficSnapshot) => world.out(formatSnapshot(snapshot));
  await measurePaths(ways, { ...options, onSnapshot: tell, signal: world.signal });
}
