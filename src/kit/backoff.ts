/** How long to wait before trying again: doubling, capped, and spread so that many waiters do not come back together. */
export interface Backoff {
  initialMs: number;
  maxMs: number;
  /** 0.5 means anything from half the delay to the whole of it; 0 is exact. */
  jitter: number;
}

/** `failures` counts from 1. `random` is a number from 0 up to, not including, 1. */
export function backoffDelay(backoff: Backoff, failures: number, random: number): number {
  const whole = Math.min(backoff.maxMs, backoff.initialMs * 2 ** Math.min(failures - 1, 40));
  return Math.round(whole * (1 - backoff.jitter * random));
}
