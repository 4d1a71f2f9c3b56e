/**
 * How many requests of one client may be asked again. Each costs a token, and tokens come back slowly: a server that is down for everyone
 * gets few retries from each of us, instead of as many as there are callers.
 */
export interface RetryBudget {
  /** False: give up, and let the caller's own back-off decide when to come back. */
  take(): boolean;
}

export function retryBudget(now: () => number, { most = 20, everyMs = 1_000 } = {}): RetryBudget {
  let tokens = most;
  let countedAt = now();
  return {
    take() {
      const earned = Math.floor((now() - countedAt) / everyMs);
      tokens = Math.min(most, tokens + earned);
      countedAt += earned * everyMs;
      if (tokens === 0) return false;
      tokens--;
      return true;
    },
  };
}
