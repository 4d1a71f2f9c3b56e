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

  /** Acts when this process has been awake for so long, and has read what came while it was not; the answer cancels that. */
  after(ms: number, act: () => void): () => void {
    const awake = () => performance.now() - this.#paused;
    const from = awake();
    let read: NodeJS.Immediate | undefined;
    const look = () => {
      // A pause is known when the ticks that were due have been, and they are timers too.
      read = setImmediate(() => {
        const left = ms - (awake() - from);
        if (left <= 0) act();
        else timer = setTimeout(look, left);
      });
    };
    let timer = setTimeout(look, ms);
    return () => {
      clearTimeout(timer);
      clearImmediate(read);
    };
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
