import type { Flow, FlowCoverage, FlowListMetadata } from "../api/flow.ts";
import type { FollowedFlows } from "../api/follow-flows.ts";
import type { FollowState } from "../api/follow-state.ts";
import { type ColumnSort, FlowColumns } from "./flow-columns.ts";
import type { FollowPhase, LiveTable } from "./messages.ts";

/** What a browser keeps of the flows of a query. */
export const MOST_FLOWS = 100_000;
const FORGOTTEN_EVERY_MS = 60_000;
const HISTORY_MS = 3_600_000;

/** Flows of one query as they come, in the order that the page shows them in. Knows nothing of where they come from. */
export class LiveFlows {
  readonly #query: string;
  #columns = new FlowColumns();
  /** A list that is not complete yet, next to what is shown. */
  #listed: FlowColumns | undefined;
  /** A list that was completed while paused. */
  #heldColumns: FlowColumns | undefined;
  #order: Uint32Array | undefined;
  #sort: ColumnSort = "when";
  #isDescending = true;
  #isPaused = false;
  /** By id, what came while paused; the newest of each. */
  readonly #held = new Map<string, Flow>();
  #denials = 0;
  #newestDenial = "";
  #phase: FollowPhase = "listing";
  #refusal: LiveTable["refusal"];
  #coverage: FlowCoverage | undefined;
  #isCut = false;
  /** By the clock of the cluster, which the browser's need not agree with. */
  #newest = 0;
  #forgotten = 0;

  constructor(query: string) {
    this.#query = query;
  }

  get columns(): FlowColumns {
    return this.#columns;
  }

  follow(event: FollowedFlows, now: number): void {
    if (event.is === "state") this.#follow(event.state);
    else if (event.is === "page") this.#page(event);
    else this.#change(event.flow, event.isNew, now);
  }

  sort(sort: ColumnSort, isDescending: boolean): void {
    if (sort === this.#sort && isDescending === this.#isDescending) return;
    [this.#sort, this.#isDescending, this.#order] = [sort, isDescending, undefined];
  }

  /** What came meanwhile is shown when it ends. */
  pause(isPaused: boolean): void {
    this.#isPaused = isPaused;
    if (isPaused) return;
    if (this.#heldColumns) [this.#columns, this.#heldColumns, this.#order] = [this.#heldColumns, undefined, undefined];
    for (const flow of this.#held.values()) this.#put(flow);
    this.#held.clear();
  }

  seeDenials(): void {
    [this.#denials, this.#newestDenial] = [0, ""];
  }

  shown(from: number, to: number): LiveTable {
    const order = this.#ordered();
    const first = Math.max(0, Math.min(from, order.length));
    return {
      ...{ phase: this.#phase, query: this.#query, total: order.length, waiting: this.#held.size },
      ...{ denials: this.#denials, newestDenial: this.#newestDenial, isCut: this.#isCut, from: first },
      ...(this.#refusal && { refusal: this.#refusal }),
      ...(this.#coverage && { coverage: this.#coverage }),
      rows: Array.from(order.subarray(first, Math.max(first, to)), (row) => this.#columns.row(row)),
    };
  }

  /** The place of the flow that is so many places after another one; of an unknown one after none: the first. */
  step(from: string, by: number): { id: string; position: number } | undefined {
    const order = this.#ordered();
    if (order.length === 0) return undefined;
    const row = this.#columns.rowOf(from);
    const position = row === undefined ? 0 : Math.min(Math.max(order.indexOf(row) + by, 0), order.length - 1);
    return { id: this.#columns.idOf(order[position] as number), position };
  }

  #ordered(): Uint32Array {
    this.#order ??= this.#columns.ordered(this.#sort, this.#isDescending);
    return this.#order;
  }

  #follow(state: FollowState): void {
    if (state.at === "listing") this.#phase = this.#columns.size > 0 ? "relisting" : "listing";
    else if (state.at === "watching") this.#phase = "live";
    else if (state.at === "refused") this.#phase = "refused";
    else this.#phase = state.refusal ? "retrying" : "live";
    this.#refusal = state.at === "refused" || state.at === "waiting" ? state.refusal : undefined;
  }

  #page({ flows, metadata, isFirst, isLast }: Extract<FollowedFlows, { is: "page" }>): void {
    if (isFirst) this.#listed = new FlowColumns();
    const listed = this.#listed ?? this.#columns;
    for (const flow of flows) listed.put(flow);
    // The first list is shown page by page; a later one takes the place of what is shown when it is whole.
    const isShown = isLast || this.#columns.size === 0 || this.#columns === listed;
    if (isShown && !this.#isPaused) [this.#columns, this.#order] = [listed, undefined];
    if (isLast && this.#isPaused && this.#columns !== listed) [this.#heldColumns] = [listed, this.#held.clear()];
    if (isLast) this.#listed = undefined;
    this.#cover(metadata, isLast);
  }

  #cover({ continue: next, historyFrom, shed, nodes }: FlowListMetadata, isLast: boolean): void {
    this.#coverage = { historyFrom, shed, nodes };
    this.#isCut = isLast && next !== undefined;
  }

  #change(flow: Flow, isNew: boolean, now: number): void {
    const isKnown = this.#columns.has(flow.metadata.name) || this.#held.has(flow.metadata.name);
    if (isNew && !isKnown && flow.verdict === "Deny") {
      this.#denials++;
      this.#newestDenial = flow.metadata.name;
    }
    if (this.#isPaused) this.#held.set(flow.metadata.name, flow);
    else this.#put(flow);
    this.#newest = Math.max(this.#newest, Date.parse(flow.lastSeen) || 0);
    if (now - this.#forgotten < FORGOTTEN_EVERY_MS || this.#isPaused) return;
    this.#forgotten = now;
    this.#columns.forgetBefore(this.#newest - HISTORY_MS);
    this.#order = undefined;
  }

  #put(flow: Flow): void {
    if (this.#columns.size >= MOST_FLOWS && !this.#columns.has(flow.metadata.name)) {
      this.#isCut = true;
      return;
    }
    this.#columns.put(flow);
    this.#order = undefined;
  }
}
