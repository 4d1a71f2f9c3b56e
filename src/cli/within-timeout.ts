import { errors } from "./errors.ts";
import type { Session } from "./session.ts";

/** Runs `work` until it is done, the user interrupts, or `--timeout` has passed; only the first ends well. */
export async function withinTimeout<T>(session: Session, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { timeout } = session.flags;
  if (timeout === undefined) return work(session.signal);
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeout);
  try {
    return await work(AbortSignal.any([session.signal, late.signal]));
  } catch (error) {
    if (late.signal.aborted && !session.signal.aborted) throw errors.TIMED_OUT(`${timeout / 1000}s`).from(error);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
