import type { WatchEvent } from "./store.ts";

/** Big objects must not make four thousand events a memory hole: past this many bytes of bodies the oldest go early. */
const MAX_BYTES = 16 * 1024 * 1024;

/** The newest events of one resource, in order. */
export class EventHistory {
  readonly #limit: number;
  #events: (WatchEvent | undefined)[] = [];
  #start = 0;
  #bytes = 0;
  #floor: number;

  constructor(limit: number, floor: number) {
    this.#limit = limit;
    this.#floor = floor;
  }

  /** Everything that happened after this revision is here. */
  get floor(): number {
    return this.#floor;
  }

  push(event: WatchEvent): void {
    this.#events.push(event);
    this.#bytes += event.stored.body.length;
    while (this.#events.length - this.#start > this.#limit || this.#bytes > MAX_BYTES) this.#evict();
  }

  clear(floor: number): void {
    this.#events = [];
    this.#start = 0;
    this.#bytes = 0;
    this.#floor = floor;
  }

  /** The events after a revision, oldest first. */
  after(revision: number): WatchEvent[] {
    let low = this.#start;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#events[middle]!.stored.revision <= revision) low = middle + 1;
      else high = middle;
    }
    return this.#events.slice(low) as WatchEvent[];
  }

  #evict(): void {
    const { stored } = this.#events[this.#start]!;
    this.#floor = stored.revision;
    this.#bytes -= stored.body.length;
    this.#events[this.#start++] = undefined;
    // Moving the array down once per `limit` evictions keeps each one cheap.
    if (this.#start > this.#limit) {
      this.#events = this.#events.slice(this.#start);
      this.#start = 0;
    }
  }
}
