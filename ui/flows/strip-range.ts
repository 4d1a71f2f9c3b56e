/** A time that is chosen on the strip by keys, in milliseconds since 1970. */
export interface StripRange {
  since: number;
  until: number;
}

/** What the strip shows, in steps of one point. */
export interface StripSpan extends StripRange {
  stepMs: number;
}

const PAGE_STEPS = 10;
const STEPS: Readonly<Record<string, number>> = {
  ...{ ArrowLeft: -1, ArrowRight: 1, PageUp: -PAGE_STEPS, PageDown: PAGE_STEPS },
};

/** After a key; undefined: the key has no meaning here. Without a range it begins at the end, which is now. */
export function movedRange(
  range: StripRange | undefined,
  { key, shiftKey }: { key: string; shiftKey: boolean },
  span: StripSpan,
): StripRange | undefined {
  const { since: first, until: last, stepMs } = span;
  if (key === "Home") return { since: first, until: first + stepMs };
  if (key === "End") return { since: last - stepMs, until: last };
  const steps = STEPS[key];
  if (steps === undefined) return undefined;
  if (!range) return { since: last - stepMs, until: last };
  const by = steps * stepMs;
  if (!shiftKey) {
    const moved = Math.min(Math.max(by, first - range.since), last - range.until);
    return { since: range.since + moved, until: range.until + moved };
  }
  if (by < 0) return { ...range, since: Math.max(range.since + by, first) };
  return { ...range, until: Math.min(range.until + by, last) };
}
