const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** A length of time as `kubectl get` prints it: two units while the smaller one still matters, then one. */
export function humanDuration(seconds: number): string {
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 2 * MINUTE) return `${Math.floor(seconds)}s`;
  if (seconds < 10 * MINUTE) return two(seconds, MINUTE, "m", 1, "s");
  if (seconds < 3 * HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  if (seconds < 8 * HOUR) return two(seconds, HOUR, "h", MINUTE, "m");
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)}h`;
  if (seconds < 8 * DAY) return two(seconds, DAY, "d", HOUR, "h");
  if (seconds < 2 * YEAR) return `${Math.floor(seconds / DAY)}d`;
  if (seconds < 8 * YEAR) return two(seconds, YEAR, "y", DAY, "d");
  return `${Math.floor(seconds / YEAR)}y`;
}

function two(seconds: number, big: number, bigUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((seconds % big) / small);
  return `${Math.floor(seconds / big)}${bigUnit}${rest === 0 ? "" : `${rest}${smallUnit}`}`;
}

/** How long ago an RFC 3339 time was. */
export function ageSince(time: string | undefined | null, now: Date): string {
  if (!time) return "<unknown>";
  const then = Date.parse(time);
  return Number.isNaN(then) ? "<unknown>" : humanDuration((now.getTime() - then) / 1000);
}
