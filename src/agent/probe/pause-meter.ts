/** Timers fire a little late on any machine; only more than this is a pause. */
const USUAL_MS = 5;

/** Knows how long this process itself stood still, so that a busy machine is not taken for a broken network. */
export class PauseMeter {
  readonly #tickMs: number;
  #last: number;
  #paused = 0;

  constructor(tickMs: number, now: number) {
    this.#tickMs = tickMs;
    this.#last = now;
  }

  /** To be called at every tick and every time something is heard. */
  note(now: number): void {
    this.#paused += Math.max(0, now - this.#last - this.#tickMs - USUAL_MS);
    this.#last = now;
  }

  /** Milliseconds of pauses so far. */
  get pausedMs(): number {
    return this.#paused;
  }
}

/** How long nothing was heard, at most. */
export class Silence {
  readonly #awake: PauseMeter;
  #heardAt: number | undefined;
  #pausedThen = 0;
  #longest = 0;

  constructor(awake: PauseMeter) {
    this.#awake = awake;
  }

  reset(now: number): void {
    this.#awake.note(now);
    this.#longest = this.longestMs(now);
    this.#heardAt = now;
    this.#pausedThen = this.#awake.pausedMs;
  }

  /** The one that still lasts is among them. */
  longestMs(now: number): number {
    if (this.#heardAt === undefined) return 0;
    return Math.max(this.#longest, now - this.#heardAt - (this.#awake.pausedMs - this.#pausedThen));
  }
}
