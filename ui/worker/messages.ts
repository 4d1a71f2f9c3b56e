import type { FlowCoverage } from "../api/flow.ts";
import type { ApiRefusal, FlowsApi } from "../api/flows-api.ts";
import type { ComparedTimes } from "../compare/compared-times.ts";
import type { MapPicture } from "../map/map-picture.ts";
import type { ComparedPair, Difference } from "./compare-flows.ts";
import type { ColumnSort, FlowRow } from "./flow-columns.ts";

/** What the page asks of its worker. */
export type PageMessage =
  | { ask: "follow"; api: FlowsApi; query: string }
  | { ask: "sort"; sort: ColumnSort; isDescending: boolean }
  /** The rows that are looked at: they come again whenever they change. */
  | { ask: "look"; from: number; to: number }
  | { ask: "pause"; isPaused: boolean }
  /** Chooses the row so many places after one; without one, the first. */
  | { ask: "step"; from: string; by: number }
  | { ask: "seen-denials" }
  | { ask: "map"; isShown: boolean }
  /** Flows that this decided are lit up on the map; empty: none are. */
  | { ask: "light"; decidedBy: string }
  /** Of the flows of the query, before and after; undefined: nothing is compared. */
  | { ask: "compare"; compared: AskedComparison | undefined };

export interface AskedComparison {
  api: FlowsApi;
  query: string;
  times: ComparedTimes;
}

export type FollowPhase = "listing" | "live" | "relisting" | "retrying" | "refused";

export interface LiveTable {
  phase: FollowPhase;
  /** The query that they are of. */
  query: string;
  refusal?: ApiRefusal;
  total: number;
  /** Flows that came while paused. */
  waiting: number;
  /** Denials that came since the last look at them, the newest one's id with them. */
  denials: number;
  newestDenial: string;
  coverage?: FlowCoverage;
  /** There are more flows than are kept here. */
  isCut: boolean;
  from: number;
  rows: readonly FlowRow[];
}

/** What the worker answers. */
export type WorkerMessage =
  | { answer: "flows"; flows: LiveTable }
  | { answer: "stepped"; id: string; position: number }
  | { answer: "map"; picture: MapPicture }
  | { answer: "compared"; comparison: Comparison };

export interface Comparison {
  times: ComparedTimes;
  refusal?: ApiRefusal;
  counts: Readonly<Record<Difference, number>>;
  /** Of each difference those of most connections. */
  pairs: readonly ComparedPair[];
  /** There are more flows than were read. */
  isCut: boolean;
}
