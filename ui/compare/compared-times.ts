/** Two times of the same length, in milliseconds since 1970: `since` to `before`, and `after` to `until`. */
export interface ComparedTimes {
  since: number;
  before: number;
  after: number;
  until: number;
}

/** Nodes send what they counted in such steps: the one that the mark is in belongs to neither side. */
const STEP_MS = 15_000;

/** As long before the mark as after it, of what is known; undefined: on one side nothing is. */
export function timesAround(
  mark: number,
  spanMs: number,
  known: { from: number; until: number },
): ComparedTimes | undefined {
  const before = Math.floor(mark / STEP_MS) * STEP_MS;
  const after = Math.ceil(mark / STEP_MS) * STEP_MS;
  const most = Math.min(spanMs, before - known.from, known.until - after);
  const length = Math.floor(most / STEP_MS) * STEP_MS;
  if (length <= 0) return undefined;
  return { since: before - length, before, after, until: after + length };
}

/** `10:42` or `10:42:30`, by the clock of the reader: the last time that it was so late. Undefined: it is no time. */
export function timeOfDay(text: string, now: number): number | undefined {
  const [, hours, minutes, seconds = "0"] = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(text.trim()) ?? [];
  if (hours === undefined || Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return undefined;
  const date = new Date(now);
  date.setHours(Number(hours), Number(minutes), Number(seconds), 0);
  if (date.getTime() > now) date.setDate(date.getDate() - 1);
  return date.getTime();
}
