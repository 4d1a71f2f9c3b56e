import type { Clock } from "../kit/clock.ts";

/** Time limit of one exchange with a server. */
export interface Deadline {
  /** Aborts when the outer signal does, or when the time is up. */
  signal: AbortSignal;
  /** Something came: the whole time again from now. */
  extend(): void;
  expired(): boolean;
  /** The exchange is over; nothing is left behind on the clock or the outer signal. */
  end(): void;
}

export function deadline(clock: Clock, ms: number, outer?: AbortSignal): Deadline {
  const inner = new AbortController();
  const stop = () => inner.abort(outer?.reason);
  outer?.addEventListener("abort", stop, { once: true });
  if (outer?.aborted) stop();
  let expired = false;
  const arm = () =>
    clock.setTimeout(() => {
      expired = true;
      inner.abort(new Error(`nothing came for ${ms} ms`));
    }, ms);
  let cancel = arm();
  return {
    signal: inner.signal,
    extend() {
      cancel();
      cancel = arm();
    },
    expired: () => expired,
    end() {
      cancel();
      outer?.removeEventListener("abort", stop);
    },
  };
}
