import type { KubeObject } from "../api/object.ts";

export interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string | null;
    leaseDurationSeconds?: number | null;
    acquireTime?: string | null;
    renewTime?: string | null;
    leaseTransitions?: number | null;
  };
}

/** A lease as we saw it, and when *we* first saw it so: the holder's own clock is never believed. */
export interface Sighting {
  lease: Lease;
  at: number;
}

/** What we know after another read: the moment stays while the lease is not renewed. */
export function sight(before: Sighting | undefined, lease: Lease, now: number): Sighting {
  const unchanged = before !== undefined && sameHold(before.lease, lease);
  return { lease, at: unchanged ? before.at : now };
}

/** Free, ours, or not renewed for its whole duration since we first saw it in this state. */
export function canAcquire({ lease, at }: Sighting, identity: string, now: number): boolean {
  const { holderIdentity, leaseDurationSeconds } = lease.spec ?? {};
  if (!holderIdentity || holderIdentity === identity) return true;
  return now - at > (leaseDurationSeconds ?? 0) * 1_000;
}

/** The lease as we want to write it: acquired if it is free or another's, renewed if it is ours. */
export function acquired(lease: Lease, identity: string, leaseMs: number, now: number): Lease {
  const time = microTime(now);
  const old = lease.spec ?? {};
  const renewal = old.holderIdentity === identity;
  return {
    ...lease,
    spec: {
      ...old,
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseMs / 1_000),
      acquireTime: renewal ? (old.acquireTime ?? time) : time,
      renewTime: time,
      leaseTransitions: (old.leaseTransitions ?? 0) + (renewal || lease.spec === undefined ? 0 : 1),
    },
  };
}

/** Ours no more: the next candidate need not wait. */
export function released(lease: Lease, now: number): Lease {
  const { holderIdentity: _, acquireTime: __, ...spec } = lease.spec ?? {};
  return { ...lease, spec: { ...spec, leaseDurationSeconds: 1, renewTime: microTime(now) } };
}

function sameHold(a: Lease, b: Lease): boolean {
  return (
    a.metadata.uid === b.metadata.uid &&
    a.spec?.holderIdentity === b.spec?.holderIdentity &&
    a.spec?.renewTime === b.spec?.renewTime &&
    a.spec?.leaseTransitions === b.spec?.leaseTransitions
  );
}

/** Kubernetes writes these with microseconds. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
