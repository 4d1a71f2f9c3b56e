import type { Drift } from "./field-diff.ts";
import type { Part } from "./outcome.ts";

/** Long enough for the user who made the change to see it. */
const REPORTED_FOR_MS = 3_600_000;
const MOST_REPORTED = 3;

/** Recently reverted drift, by part; reported in status. */
export interface DriftReport {
  note(part: Part, drift: Drift, now: number): void;
  of(part: Part, now: number): Drift[];
}

export function driftReport(): DriftReport {
  const notes = new Map<Part, { drift: Drift; at: number }[]>();
  return {
    note(part, drift, now) {
      const others = (notes.get(part) ?? []).filter(
        ({ drift: { object, path } }) => object !== drift.object || path !== drift.path,
      );
      notes.set(part, [{ drift, at: now }, ...others].slice(0, MOST_REPORTED));
    },
    of(part, now) {
      const recent = (notes.get(part) ?? []).filter(({ at }) => now - at < REPORTED_FOR_MS);
      notes.set(part, recent);
      return recent.map(({ drift }) => drift);
    },
  };
}
