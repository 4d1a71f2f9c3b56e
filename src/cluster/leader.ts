import { backoffDelay } from "../kit/backoff.ts";
import { type Clock, sleep, systemClock } from "../kit/clock.ts";
import type { Client } from "./client.ts";
import { deadline } from "./deadline.ts";
import { isNotFound } from "./failures.ts";
import { LEASES } from "./kinds.ts";
import { acquired, canAcquire, type Lease, released, type Sighting, sight } from "./lease.ts";

export interface LeaderOptions {
  client: Client;
  namespace: string;
  /** Of the Lease. */
  name: string;
  /** Ours, different from every other candidate's, and new after a restart. */
  identity: string;
  /** How long others wait for a leader that has gone silent. */
  leaseMs?: number;
  /** A leader that could not renew for this long has lost, well before anyone may take over. */
  renewDeadlineMs?: number;
  retryMs?: number;
  clock?: Clock;
  /** Called when the API server has answered, whoever holds the lease. */
  onAnswer?: () => void;
  /** Called for every read or renewal that failed. */
  onError?: (error: unknown) => void;
}

export interface Election {
  readonly leading: boolean;
  /** Ends the work, then gives the lease back. */
  stop(): Promise<void>;
}

/**
 * Runs `lead` while we hold the Lease. Its signal aborts when the hold is lost or `stop` is called; then, unless stopped, we stand again.
 *
 * Guarantee: between candidates whose clocks run equally fast and do not jump, `lead` is aborted before another leader starts. What the
 * clocks say does not matter: each measures from its own sightings. A `lead` that ignores its signal is beyond this.
 */
export function electLeader(options: LeaderOptions, lead: (signal: AbortSignal) => Promise<void>): Election {
  const { leaseMs = 15_000, renewDeadlineMs = 10_000, retryMs = 2_000, clock = systemClock } = options;
  if (!(leaseMs > renewDeadlineMs && renewDeadlineMs > retryMs)) {
    throw new RangeError("a lease must outlast the renew deadline, and that the retry period");
  }
  const stopping = new AbortController();
  const candidate = createCandidate(options, leaseMs, clock);
  let leading = false;
  /** In a row, of looks and renewals. */
  let failures = 0;

  /** The moment we asked, if we hold the lease as of then. */
  const attempt = async (signal: AbortSignal): Promise<number | undefined> => {
    const askedAt = clock.now();
    const limit = deadline(clock, renewDeadlineMs, signal);
    try {
      const isHeld = await candidate.takeOrRenew(limit.signal);
      options.onAnswer?.();
      return isHeld ? askedAt : undefined;
    } catch (error) {
      failures++;
      if (!signal.aborted) options.onError?.(error);
      return undefined;
    } finally {
      limit.end();
    }
  };

  /** Renews until lost or stopped. A renewal that hangs does not help: the deadline counts from the last one that went well. */
  const holdOn = async (since: number, lost: AbortController): Promise<void> => {
    let renewedAt = since;
    while (!lost.signal.aborted) {
      const left = renewedAt + renewDeadlineMs - clock.now();
      const disarm = clock.setTimeout(() => lost.abort(), Math.max(0, left));
      await sleep(clock, Math.min(retryMs, left), lost.signal);
      if (!lost.signal.aborted) renewedAt = (await attempt(lost.signal)) ?? renewedAt;
      disarm();
      if (candidate.isAnothers()) lost.abort();
    }
  };

  const term = async (since: number): Promise<void> => {
    const lost = new AbortController();
    const stop = () => lost.abort();
    stopping.signal.addEventListener("abort", stop, { once: true });
    if (stopping.signal.aborted) stop();
    leading = true;
    const working = lead(lost.signal).catch((error: unknown) => options.onError?.(error));
    // Work that ends by itself ends the term; another one begins.
    const worked = working.finally(stop);
    await holdOn(since, lost);
    leading = false;
    await worked;
    stopping.signal.removeEventListener("abort", stop);
  };

  const run = async (): Promise<void> => {
    const backoff = { initialMs: retryMs, maxMs: leaseMs, jitter: 0.5 };
    while (!stopping.signal.aborted) {
      const failed = failures;
      const since = await attempt(stopping.signal);
      if (failures === failed) failures = 0;
      if (since !== undefined) await term(since);
      // A candidate that only waits comes back as usual; one that is not answered lets the server recover.
      await sleep(clock, failures === 0 ? retryMs : backoffDelay(backoff, failures, Math.random()), stopping.signal);
    }
    // Only after the work has ended: the next leader must find us done.
    const limit = deadline(clock, renewDeadlineMs);
    await candidate.release(limit.signal).catch((error: unknown) => options.onError?.(error));
    limit.end();
  };

  const running = run();
  return {
    get leading() {
      return leading;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function createCandidate(options: LeaderOptions, leaseMs: number, clock: Clock) {
  const { client, namespace, name, identity } = options;
  let seen: Sighting | undefined;

  const look = async (signal: AbortSignal): Promise<Lease | undefined> => {
    try {
      return await client.get<Lease>(LEASES, { namespace, name }, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };

  return {
    async takeOrRenew(signal: AbortSignal): Promise<boolean> {
      const lease = await look(signal);
      if (lease === undefined) {
        const fresh: Lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name, namespace } };
        seen = sight(
          seen,
          await client.create(LEASES, acquired(fresh, identity, leaseMs, clock.now()), { signal }),
          clock.now(),
        );
        return true;
      }
      seen = sight(seen, lease, clock.now());
      if (!canAcquire(seen, identity, clock.now())) return false;
      // Its resourceVersion makes this a compare-and-swap: of two who try, one gets a conflict.
      const taken = await client.replace(LEASES, acquired(lease, identity, leaseMs, clock.now()), { signal });
      seen = sight(seen, taken, clock.now());
      return true;
    },
    isAnothers: (): boolean => seen?.lease.spec?.holderIdentity !== identity,
    async release(signal: AbortSignal): Promise<void> {
      const lease = await look(signal);
      if (lease?.spec?.holderIdentity === identity)
        await client.replace(LEASES, released(lease, clock.now()), { signal });
    },
  };
}
