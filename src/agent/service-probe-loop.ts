import { type Clock, sleep } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { ServiceProbeResult } from "./service-probe.ts";

/** What is known of services by way of the programs, found out again and again while they act. */
export interface ServiceProbeLoop {
  proven(): boolean;
  /** Proven, or there is nothing to prove it by: enough to continue, not to be reported. */
  noObjection(): boolean;
  last(): ServiceProbeResult | undefined;
  /** Whether the last look changed `proven`. */
  changed(): boolean;
  done: Promise<void>;
}

export interface ServiceProbeLoopOptions {
  prove(): Promise<ServiceProbeResult>;
  /** Whether the programs act. */
  acting(): boolean;
  /** After every look. */
  onProbe(): void;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

const UNPROVEN_MS = 500;
const PROVEN_MS = 10_000;
/** A single failure may be the API server's restart. */
const FAILURES = 3;

export function probeServicesForever({
  prove,
  acting,
  onProbe: onLook,
  clock,
  log,
  signal,
}: ServiceProbeLoopOptions): ServiceProbeLoop {
  let last: ServiceProbeResult | undefined;
  let [proven, failures] = [false, 0];
  let news = false;
  const look = async (): Promise<void> => {
    const was = proven;
    last = acting() ? await prove() : undefined;
    failures = last?.is === "failed" ? failures + 1 : 0;
    proven = last?.is === "proven" || (proven && last?.is === "failed" && failures < FAILURES);
    news = proven !== was;
    if (news)
      log.info({ proof: last }, proven ? "service routing is verified" : "service routing is no longer verified");
  };
  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      await look();
      onLook();
      await sleep(clock, proven && failures === 0 ? PROVEN_MS : UNPROVEN_MS, signal);
    }
  };
  return {
    proven: () => proven,
    noObjection: () => proven || last?.is === "nothingToAsk",
    last: () => last,
    changed: () => news,
    // Not at once: the listeners are not registered yet.
    done: Promise.resolve().then(loop),
  };
}
