import type { QueryFieldName } from "./fields.ts";
import type { Glob } from "./glob.ts";

/** A query as it was read. `text` is what was read, as it stands. */
export interface FlowQuery {
  text: string;
  condition: Condition;
  since?: TimeBound;
  until?: TimeBound;
}

/** Milliseconds before now, or since 1970. */
export type TimeBound = { ago: number } | { at: number };

/** No condition at all is `all` of nothing. */
export type Condition =
  | { is: "all"; of: readonly Condition[] }
  | { is: "any"; of: readonly Condition[] }
  | { is: "not"; of: Condition }
  | { is: "word"; glob: Glob }
  | { is: "field"; field: QueryFieldName; values: readonly ValueTest[] };

export type ValueTest =
  | { is: "pair"; namespace: Glob | undefined; name: Glob }
  | { is: "name"; glob: Glob }
  | { is: "label"; key: string; value: Glob | undefined }
  | { is: "choice"; choice: string }
  /** Both ends included. */
  | { is: "range"; least: number; most: number }
  | { is: "addresses"; family: "IPv4" | "IPv6"; first: bigint; last: bigint };

/** Where and why a query cannot be read, for editors; positions count UTF-16 units from 0. */
export interface QueryProblem {
  position: number;
  length: number;
  found: string;
  expected: string;
  nearest?: string;
}

export function timeOf(bound: TimeBound, now: number): number {
  return "at" in bound ? bound.at : now - bound.ago;
}
