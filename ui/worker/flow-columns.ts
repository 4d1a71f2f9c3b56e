import type { FlowEnd } from "../../src/api/protocol/flow.ts";
import type { Flow } from "../api/flow.ts";
import { decidedBy, endText, planeText, portText } from "../flows/flow-text.ts";
import { Names } from "./names.ts";

/** A row as the page shows it. */
export interface FlowRow {
  id: string;
  lastSeen: number;
  isDenied: boolean;
  from: string;
  to: string;
  port: string;
  decidedBy: string;
  bytes: number;
  connections: number;
  plane: string;
}

export const COLUMN_SORTS = [
  "when",
  "verdict",
  "from",
  "to",
  "port",
  "decided",
  "bytes",
  "connections",
  "plane",
] as const;
export type ColumnSort = (typeof COLUMN_SORTS)[number];

/** Who two ends are, by the number that their text has in `ends`. */
export interface FlowPair {
  from: number;
  to: number;
  isDenied: boolean;
  decidedBy: string;
  bytes: number;
}

const FIRST_CAPACITY = 1_024;
type TextColumn = "from" | "to" | "port" | "decided" | "plane";

/** Flows as columns of numbers: a hundred thousand rows are a few megabytes, and a row is made of them only when it is looked at. */
export class FlowColumns {
  #size = 0;
  #capacity = FIRST_CAPACITY;
  readonly #rowOf = new Map<string, number>();
  /** Ids are not among them: each is there once. */
  readonly #names = new Names();
  readonly #ports = new Map<number, number>();
  readonly #ends = new Map<number, Pick<FlowEnd, "namespace" | "name" | "type">>();
  #ids: string[] = [];
  #lastSeen = new Float64Array(FIRST_CAPACITY);
  #bytes = new Float64Array(FIRST_CAPACITY);
  #connections = new Float64Array(FIRST_CAPACITY);
  #denied = new Uint8Array(FIRST_CAPACITY);
  #texts: Record<TextColumn, Uint32Array> = {
    from: new Uint32Array(FIRST_CAPACITY),
    to: new Uint32Array(FIRST_CAPACITY),
    port: new Uint32Array(FIRST_CAPACITY),
    decided: new Uint32Array(FIRST_CAPACITY),
    plane: new Uint32Array(FIRST_CAPACITY),
  };

  get size(): number {
    return this.#size;
  }

  has(id: string): boolean {
    return this.#rowOf.has(id);
  }

  rowOf(id: string): number | undefined {
    return this.#rowOf.get(id);
  }

  idOf(row: number): string {
    return this.#ids[row] as string;
  }

  put(flow: Flow): void {
    const id = flow.metadata.name;
    let row = this.#rowOf.get(id);
    if (row === undefined) {
      row = this.#size++;
      if (this.#size > this.#capacity) this.#grow();
      this.#rowOf.set(id, row);
      this.#ids[row] = id;
    }
    this.#lastSeen[row] = Date.parse(flow.lastSeen) || 0;
    this.#bytes[row] = flow.bytes + flow.replyBytes;
    this.#connections[row] = flow.started;
    this.#denied[row] = flow.verdict === "Deny" ? 1 : 0;
    this.#texts.from[row] = this.#end(flow.from);
    this.#texts.to[row] = this.#end(flow.to);
    this.#texts.port[row] = this.#names.numberOf(portText(flow));
    this.#ports.set(this.#texts.port[row] as number, flow.port);
    this.#texts.decided[row] = this.#names.numberOf(decidedBy(flow));
    this.#texts.plane[row] = this.#names.numberOf(planeText(flow.dataplane));
  }

  row(row: number): FlowRow {
    const text = (column: TextColumn) => this.#names.textOf(this.#texts[column][row] as number);
    return {
      ...{ id: this.idOf(row), lastSeen: this.#lastSeen[row] as number, isDenied: this.#denied[row] === 1 },
      ...{ from: text("from"), to: text("to"), port: text("port"), decidedBy: text("decided"), plane: text("plane") },
      ...{ bytes: this.#bytes[row] as number, connections: this.#connections[row] as number },
    };
  }

  /** All rows in an order; rows that are equal in it come as they were last seen, the newest first. */
  ordered(sort: ColumnSort, isDescending: boolean): Uint32Array {
    const values = this.#valuesOf(sort);
    const sign = isDescending ? -1 : 1;
    const seen = this.#lastSeen;
    const order = Uint32Array.from({ length: this.#size }, (_, row) => row);
    return order.sort(
      (a, b) =>
        sign * ((values[a] as number) - (values[b] as number)) || (seen[b] as number) - (seen[a] as number) || a - b,
    );
  }

  pair(row: number): FlowPair {
    return {
      from: this.#texts.from[row] as number,
      to: this.#texts.to[row] as number,
      isDenied: this.#denied[row] === 1,
      decidedBy: this.#names.textOf(this.#texts.decided[row] as number),
      bytes: this.#bytes[row] as number,
    };
  }

  end(number: number): Pick<FlowEnd, "namespace" | "name" | "type"> {
    return this.#ends.get(number) as Pick<FlowEnd, "namespace" | "name" | "type">;
  }

  /** Forgets what was last seen before a time: a watch does not say what the server has forgotten. */
  forgetBefore(time: number): void {
    let kept = 0;
    for (let row = 0; row < this.#size; row++) {
      const id = this.idOf(row);
      if ((this.#lastSeen[row] as number) < time) this.#rowOf.delete(id);
      else this.#move(row, kept++, id);
    }
    this.#size = kept;
    this.#ids.length = kept;
  }

  #move(from: number, to: number, id: string): void {
    this.#rowOf.set(id, to);
    this.#ids[to] = id;
    for (const column of [this.#lastSeen, this.#bytes, this.#connections, this.#denied, ...Object.values(this.#texts)])
      column[to] = column[from] as number;
  }

  #end({ namespace, name, type }: FlowEnd): number {
    const number = this.#names.numberOf(endText({ namespace, name }));
    if (!this.#ends.has(number)) this.#ends.set(number, { namespace, name, type });
    return number;
  }

  #valuesOf(sort: ColumnSort): ArrayLike<number> {
    switch (sort) {
      case "when":
        return this.#lastSeen;
      case "bytes":
        return this.#bytes;
      case "connections":
        return this.#connections;
      case "verdict":
        return this.#denied;
      case "port": {
        const column = this.#texts.port;
        return Float64Array.from({ length: this.#size }, (_, row) => this.#ports.get(column[row] as number) ?? 0);
      }
      default: {
        const column = this.#texts[sort];
        const ranks = this.#names.ranks();
        return Uint32Array.from({ length: this.#size }, (_, row) => ranks[column[row] as number] as number);
      }
    }
  }

  #grow(): void {
    this.#capacity *= 2;
    const floats = (old: Float64Array) => {
      const column = new Float64Array(this.#capacity);
      column.set(old);
      return column;
    };
    const numbers = (old: Uint32Array) => {
      const column = new Uint32Array(this.#capacity);
      column.set(old);
      return column;
    };
    const denied = new Uint8Array(this.#capacity);
    denied.set(this.#denied);
    this.#denied = denied;
    [this.#lastSeen, this.#bytes] = [floats(this.#lastSeen), floats(this.#bytes)];
    this.#connections = floats(this.#connections);
    const { from, to, port, decided, plane } = this.#texts;
    this.#texts = {
      ...{ from: numbers(from), to: numbers(to), port: numbers(port) },
      ...{ decided: numbers(decided), plane: numbers(plane) },
    };
  }
}
