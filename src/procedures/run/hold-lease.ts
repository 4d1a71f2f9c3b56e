import type { Client } from "../../cluster/client.ts";
import { isAlreadyExists, isConflict, isUnreachable } from "../../cluster/failures.ts";
import { createInformer } from "../../cluster/informer.ts";
import { LEASES } from "../../cluster/kinds.ts";
import { acquired, type Lease, released } from "../../cluster/lease.ts";
import { type Clock, sleep } from "../../kit/clock.ts";
import { undefinedIfNotFound } from "../actions/objects/target.ts";
import { errors } from "./errors.ts";
import { formatHolder, isHolderDead } from "./holder.ts";

export interface LeaseOptions {
  client: Client;
  namespace: string;
  identity: string;
  clock: Clock;
  signal: AbortSignal;
  leaseMs?: number;
  renewMs?: number;
}

const NAME = "vendorctl";
const LEASE_MS = 15_000;
const RENEW_MS = 3_000;

/**
 * Runs work that only one vendorctl may do at a time. A holder that renews the lease keeps it, and we refuse;
 * one whose process is gone, or who does not renew for the whole duration, is succeeded. The signal aborts when the lease is lost.
 *
 * An API server that does not answer takes the lease from no one. But it may be given away as soon as it answers, so until the lease was
 * seen to be ours and renewed, `fence` lets no write pass.
 */
export async function holdLease<T>(
  options: LeaseOptions,
  work: (signal: AbortSignal, fence: () => Promise<void>) => Promise<T>,
): Promise<T> {
  await acquire(options);
  const held = new HeldLease(options);
  const { lost } = held;
  const stopped = new AbortController();
  const renewing = renew(options, held, stopped.signal);
  try {
    return await work(lost.signal, () => held.fence());
  } finally {
    stopped.abort();
    await renewing;
    held.close();
    if (!lost.signal.aborted) await releaseLease(options);
  }
}

async function acquire(options: LeaseOptions): Promise<void> {
  for (;;) {
    options.signal.throwIfAborted();
    const lease = await read(options);
    const holder = lease?.spec?.holderIdentity;
    if (lease && holder && holder !== options.identity && !isHolderDead(holder)) await outlive(options, lease);
    else if (await tryAcquire(options, lease)) return;
  }
}

const read = ({ client, namespace, signal }: LeaseOptions): Promise<Lease | undefined> =>
  client.get<Lease>(LEASES, { namespace, name: NAME }, { signal }).catch(undefinedIfNotFound);

/** False if another process was quicker. */
async function tryAcquire(options: LeaseOptions, lease: Lease | undefined): Promise<boolean> {
  const { client, namespace, identity, clock, leaseMs = LEASE_MS } = options;
  const metadata = { name: NAME, namespace };
  const fresh: Lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata };
  const wanted = acquired(lease ?? fresh, identity, leaseMs, clock.now());
  try {
    if (lease) await client.replace(LEASES, wanted);
    else await client.create(LEASES, wanted);
    return true;
  } catch (error) {
    if (isConflict(error) || isAlreadyExists(error)) return false;
    throw error;
  }
}

/** Comes back when the holder lets go, or has not renewed for the lease's duration by our own clock; refuses as soon as it renews. */
async function outlive(options: LeaseOptions, { spec }: Lease): Promise<void> {
  const { client, namespace, clock, signal, leaseMs = LEASE_MS } = options;
  const informer = createInformer<Lease>(client, LEASES, { clock, namespace, fieldSelector: `metadata.name=${NAME}` });
  const timeUp = new AbortController();
  const changed = new Promise<Lease>((resolve) => {
    informer.onChange(({ object }) => {
      if (object.spec?.renewTime !== spec?.renewTime) resolve(object);
    });
  });
  try {
    const duration = (spec?.leaseDurationSeconds ?? leaseMs / 1_000) * 1_000;
    const newest = await Promise.race([changed, sleep(clock, duration, AbortSignal.any([signal, timeUp.signal]))]);
    signal.throwIfAborted();
    const holder = newest?.spec?.holderIdentity;
    if (holder) throw errors.RUN_HELD(formatHolder(holder), newest.spec?.acquireTime ?? "an unknown time");
    // Silent for its whole duration: dead, or as good as. Its own next write fails, because the lease is ours by then.
    if (newest === undefined) await acquireFrom(options, spec);
  } finally {
    timeUp.abort();
    await informer.stop();
  }
}

async function acquireFrom(options: LeaseOptions, seen: Lease["spec"]): Promise<void> {
  const lease = await read(options);
  if (lease?.spec?.renewTime !== seen?.renewTime) return;
  // Ours from here on: the next look finds our own name, and takes it.
  await tryAcquire(options, lease);
}

/** What is known of the lease we hold: when it was last renewed, and whether somebody else has it. */
class HeldLease {
  readonly lost = new AbortController();
  readonly #options: LeaseOptions;
  readonly #waiting = new Set<(unanswered?: unknown) => void>();
  readonly #interrupted = () => this.#wake();
  #renewedAt: number;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#renewedAt = options.clock.now();
    options.signal.addEventListener("abort", this.#interrupted);
  }

  close(): void {
    this.#options.signal.removeEventListener("abort", this.#interrupted);
  }

  renewed(at: number): void {
    this.#renewedAt = at;
    this.#wake();
  }

  taken(): void {
    this.lost.abort(errors.RUN_TAKEN_OVER());
    this.#wake();
  }

  /** A renewal was not answered. Who waits at the fence learns it, and comes back by its own back-off. */
  unanswered(error: unknown): void {
    if (isUnreachable(error)) this.#wake(error);
  }

  /** Passes at once while others must still wait for us. */
  async fence(): Promise<void> {
    const { clock, signal, leaseMs = LEASE_MS, renewMs = RENEW_MS } = this.#options;
    for (;;) {
      this.lost.signal.throwIfAborted();
      if (clock.now() - this.#renewedAt <= leaseMs - renewMs) return;
      // Only who would have to wait: an interrupted run still records that it stopped.
      signal.throwIfAborted();
      const unanswered = await new Promise<unknown>((resolve) => this.#waiting.add(resolve));
      if (unanswered !== undefined) throw unanswered;
    }
  }

  #wake(unanswered?: unknown): void {
    for (const resolve of this.#waiting) resolve(unanswered);
    this.#waiting.clear();
  }
}

async function renew(options: LeaseOptions, held: HeldLease, stopped: AbortSignal): Promise<void> {
  const { clock, identity, renewMs = RENEW_MS } = options;
  while (!stopped.aborted) {
    await sleep(clock, renewMs, stopped);
    if (stopped.aborted) return;
    const askedAt = clock.now();
    try {
      const lease = await read({ ...options, signal: stopped });
      const ours = lease?.spec?.holderIdentity === identity;
      if (ours && (await tryAcquire(options, lease))) held.renewed(askedAt);
      else if (!ours) return held.taken();
    } catch (error) {
      // Nothing is known of the lease then: the fence closes by itself, and the next look decides.
      held.unanswered(error);
    }
  }
}

async function releaseLease(options: LeaseOptions): Promise<void> {
  const { client, identity, clock, namespace } = options;
  try {
    const lease = await client.get<Lease>(LEASES, { namespace, name: NAME });
    if (lease.spec?.holderIdentity === identity) await client.replace(LEASES, released(lease, clock.now()));
  } catch {
    // It ends by itself; the work is done either way.
  }
}
