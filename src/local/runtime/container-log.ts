import type { LogOptions } from "./node-runtime.ts";

/** Beyond this the oldest lines go, as a kubelet rotates files: a program that runs for weeks must not fill its cluster's memory. */
const MOST_LINES = 5_000;

/** The lines of one run of a container, from the first one still kept. */
interface Run {
  lines: string[];
  dropped: number;
}

/** What a container has said, in this run and the one before. */
export class ContainerLog {
  #current: Run | undefined;
  #previous: Run | undefined;
  /** Woken when there is more to read, or never will be. */
  readonly #readers = new Set<() => void>();
  #ended = false;

  /** What is written from here on is said by a new run. */
  startRun(): void {
    this.#previous = this.#current;
    this.#current = { lines: [], dropped: 0 };
  }

  write(line: string): void {
    this.#current ??= { lines: [], dropped: 0 };
    this.#current.lines.push(line);
    if (this.#current.lines.length > MOST_LINES) {
      this.#current.dropped += this.#current.lines.splice(0, MOST_LINES / 10).length;
    }
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *read({ follow = false, previous = false, tailLines, signal }: LogOptions): AsyncGenerator<string> {
    let run = previous ? this.#previous : this.#current;
    if (previous) {
      yield* run?.lines.slice(tailLines === undefined ? 0 : -tailLines || run.lines.length) ?? [];
      return;
    }
    let at = run && tailLines !== undefined ? run.dropped + Math.max(0, run.lines.length - tailLines) : 0;
    for (;;) {
      if (run !== this.#current) {
        yield* run?.lines.slice(Math.max(0, at - run.dropped)) ?? [];
        run = this.#current;
        at = 0;
      }
      while (run && at < run.dropped + run.lines.length) {
        at = Math.max(at, run.dropped);
        yield run.lines[at++ - run.dropped] as string;
      }
      if (run !== this.#current) continue;
      if (!follow || this.#ended || signal?.aborted) return;
      await this.#more(signal);
    }
  }

  #more(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#readers.delete(wake);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      this.#readers.add(wake);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }

  #wake(): void {
    for (const wake of [...this.#readers]) wake();
  }
}
