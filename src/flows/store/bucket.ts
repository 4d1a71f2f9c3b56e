import type { FlowCounts } from "../../api/protocol/flow.ts";
import { COUNTS, LIVE, ROWS, type Sums, WIDTH } from "./counts.ts";

type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/** Rows that do not change any more. A column is as wide as its largest number; one of zeros only is not kept. */
interface SealedRows {
  size: number;
  flows: Column;
  /** Milliseconds after the bucket's begin. */
  seen: Column | undefined;
  counts: readonly (Column | undefined)[];
  bytes: number;
}

/** How far something was merged, in the order in which it is given up. */
export const SHED_LEVELS = ["ports", "addresses", "names"] as const;
export type ShedLevel = (typeof SHED_LEVELS)[number];

const FIRST_ROWS = 64;
/** Of an open row, with its place in the map of rows. */
const OPEN_ROW_BYTES = (COUNTS.length + 1) * 8 + 8 + 40;
/** Of objects that hold columns. */
const SEALED_BYTES = 1_500;

/** What was counted in one span of time: rows that are open until the span is over, then packed. What comes late is opened next to it. */
export class Bucket {
  readonly start: number;
  /** How far rows of this bucket were merged: an index of SHED_LEVELS and one more, 0 for not at all. */
  shed = 0;
  /** What agents say of their own sums: merged under a coarser key, and packets in none. */
  merged = 0;
  unattributed = 0;
  /** Of the last change. */
  version = 0;
  /** When something was added last: what still comes late is not packed piece by piece. */
  addedAt = 0;
  #open: OpenRows | undefined;
  #sealed: SealedRows[] = [];

  constructor(start: number) {
    this.start = start;
  }

  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** In bytes, of rows that are not packed. */
  get openMemory(): number {
    return this.#open?.memory ?? 0;
  }

  /** In bytes, of all rows. */
  get memory(): number {
    return this.openMemory + this.#sealed.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** True: the flow had no row in the open part, and has one now. `batch` tells connections that are open at the same time from the same ones later. */
  add(flow: number, counts: FlowCounts, seen: number, batch: number): boolean {
    this.#open ??= new OpenRows();
    return this.#open.add(flow, counts, Math.max(0, seen - this.start), batch);
  }

  seal(): void {
    if (!this.#open) return;
    this.#sealed.push(this.#open.sealed());
    this.#open = undefined;
  }

  /** Adds all rows to sums, or takes them off (`sign` -1, where `live` and `seen` stay). Of flows whose `chosen` is 0 nothing. */
  sum(sums: Sums, sign: 1 | -1, chosen?: Uint8Array): void {
    for (const rows of this.#parts()) {
      const adding = { flows: wideFlows(rows), size: rows.size, sign, chosen };
      for (let index = 0; index < LIVE; index++) {
        const column = rows.counts[index];
        if (column) addColumn(sums.values, index, wide(column, rows.size), adding);
      }
      countRows(sums.values, adding);
      if (sign > 0) latest(sums, rows, this.start, chosen);
    }
  }

  /** Only what is open, and when each flow was last seen. */
  latest(sums: Sums, chosen: Uint8Array): void {
    for (const rows of this.#parts()) latest(sums, rows, this.start, chosen);
  }

  /** Sums of columns over all chosen flows, apart by the value of `chosen`. */
  sumOver(columns: readonly number[], chosen: Uint8Array, into: Float64Array): void {
    for (const rows of this.#parts()) {
      const { numbers, groups, count } = chosenRows(rows, chosen);
      if (count === 0) continue;
      const isFew = count * FEW < rows.size;
      columns.forEach((column, index) => {
        const packed = rows.counts[column];
        if (!packed) return;
        const values = isFew ? packed : wide(packed, rows.size);
        for (let at = 0; at < count; at++)
          into[(groups[at]! - 1) * columns.length + index]! += values[numbers[at]!] as number;
      });
    }
  }

  /** Calls back with the flow of each row. */
  eachFlow(see: (flow: number) => void): void {
    for (const { flows, size } of this.#parts()) for (let row = 0; row < size; row++) see(flows[row] as number);
  }

  #parts(): Rows[] {
    return this.#open ? [...this.#sealed, this.#open] : this.#sealed;
  }
}

interface Rows {
  size: number;
  flows: Column;
  seen: Column | undefined;
  counts: readonly (Column | undefined)[];
}

class OpenRows implements Rows {
  size = 0;
  flows = new Uint32Array(FIRST_ROWS);
  seen = new Uint32Array(FIRST_ROWS);
  counts = COUNTS.map(() => new Float64Array(FIRST_ROWS));
  #batches = new Float64Array(FIRST_ROWS);
  readonly #rowOf = new Map<number, number>();

  get memory(): number {
    return this.flows.length * OPEN_ROW_BYTES;
  }

  add(flow: number, counts: FlowCounts, seen: number, batch: number): boolean {
    const known = this.#rowOf.get(flow);
    const row = known ?? this.size;
    if (known === undefined) {
      if (row === this.flows.length) this.#grow();
      this.#rowOf.set(flow, row);
      this.flows[row] = flow;
      this.size++;
    }
    for (let index = 0; index < LIVE; index++)
      (this.counts[index] as Float64Array)[row]! += counts[COUNTS[index] as keyof FlowCounts];
    const live = this.counts[LIVE] as Float64Array;
    if (this.#batches[row] === batch) live[row]! += counts.live;
    else if (seen >= (this.seen[row] as number)) live[row] = counts.live;
    this.#batches[row] = batch;
    this.seen[row] = Math.max(this.seen[row] as number, seen);
    return known === undefined;
  }

  sealed(): SealedRows {
    const { size } = this;
    const flows = narrowed(this.flows, size) ?? new Uint8Array(size);
    const seen = narrowed(this.seen, size);
    const counts = this.counts.map((column) => narrowed(column, size));
    const bytes = [flows, seen, ...counts].reduce((sum, column) => sum + (column?.byteLength ?? 0), SEALED_BYTES);
    return { size, flows, seen, counts, bytes };
  }

  #grow(): void {
    const room = this.flows.length * 2;
    const wide = <T extends Column>(make: new (length: number) => T, from: T) => {
      const to = new make(room);
      to.set(from);
      return to;
    };
    this.flows = wide(Uint32Array, this.flows);
    this.seen = wide(Uint32Array, this.seen);
    this.counts = this.counts.map((column) => wide(Float64Array, column));
    this.#batches = wide(Float64Array, this.#batches);
  }
}

function narrowed(column: Column, size: number): Column | undefined {
  let most = 0;
  let isWhole = true;
  for (let row = 0; row < size; row++) {
    const value = column[row] as number;
    if (value > most) most = value;
    if (value < 0 || !Number.isInteger(value)) isWhole = false;
  }
  if (most === 0 && isWhole) return undefined;
  const make =
    !isWhole || most >= 2 ** 32
      ? Float64Array
      : most >= 2 ** 16
        ? Uint32Array
        : most >= 2 ** 8
          ? Uint16Array
          : Uint8Array;
  const packed = new make(size);
  for (let row = 0; row < size; row++) packed[row] = column[row] as number;
  return packed;
}

/** Columns of four widths make a loop ten times as slow as a column of one: they are copied to these first. */
const scratch = { flows: new Uint32Array(0), values: new Float64Array(0), seen: new Float64Array(0) };

function wideFlows({ flows, size }: Rows): Uint32Array {
  if (flows instanceof Uint32Array) return flows;
  if (scratch.flows.length < size) scratch.flows = new Uint32Array(size * 2);
  scratch.flows.set(flows);
  return scratch.flows;
}

function wide(column: Column, size: number, into: "values" | "seen" = "values"): Float64Array {
  if (column instanceof Float64Array) return column;
  if (scratch[into].length < size) scratch[into] = new Float64Array(size * 2);
  scratch[into].set(column.length > size ? column.subarray(0, size) : column);
  return scratch[into];
}

/** Of so many rows one is chosen: then copying a whole column costs more than it saves. */
const FEW = 8;
const chosenNow = { numbers: new Uint32Array(0), groups: new Uint8Array(0) };

/** Rows of the flows that are chosen, each with the value that its flow has in `chosen`. */
function chosenRows(rows: Rows, chosen: Uint8Array): typeof chosenNow & { count: number } {
  if (chosenNow.numbers.length < rows.size) {
    chosenNow.numbers = new Uint32Array(rows.size * 2);
    chosenNow.groups = new Uint8Array(rows.size * 2);
  }
  const { numbers, groups } = chosenNow;
  const flows = wideFlows(rows);
  let count = 0;
  for (let row = 0; row < rows.size; row++) {
    const group = chosen[flows[row]!]!;
    if (group === 0) continue;
    numbers[count] = row;
    groups[count++] = group;
  }
  return { numbers, groups, count };
}

const NO_FLOWS = new Uint8Array(0);

interface Adding {
  flows: Uint32Array;
  size: number;
  sign: 1 | -1;
  chosen: Uint8Array | undefined;
}

function addColumn(
  values: Float64Array,
  index: number,
  column: Float64Array,
  { flows, size, sign, chosen = NO_FLOWS }: Adding,
): void {
  const all = chosen === NO_FLOWS;
  for (let row = 0; row < size; row++) {
    const flow = flows[row]!;
    if (all || chosen[flow] !== 0) values[flow * WIDTH + index]! += sign * column[row]!;
  }
}

function countRows(values: Float64Array, { flows, size, sign, chosen = NO_FLOWS }: Adding): void {
  const all = chosen === NO_FLOWS;
  for (let row = 0; row < size; row++) {
    const flow = flows[row]!;
    if (all || chosen[flow] !== 0) values[flow * WIDTH + ROWS]! += sign;
  }
}

/** What is open, and when it was last seen: by the latest row, whatever the order in which rows came. */
function latest({ values, seen }: Sums, rows: Rows, start: number, chosen: Uint8Array = NO_FLOWS): void {
  const { size } = rows;
  const all = chosen === NO_FLOWS;
  const flows = wideFlows(rows);
  const open = rows.counts[LIVE];
  const live = open && wide(open, size);
  const after = rows.seen && wide(rows.seen, size, "seen");
  for (let row = 0; row < size; row++) {
    const flow = flows[row]!;
    if (!all && chosen[flow] === 0) continue;
    const at = start + (after ? after[row]! : 0);
    if (at < seen[flow]!) continue;
    seen[flow] = at;
    values[flow * WIDTH + LIVE] = live ? live[row]! : 0;
  }
}
