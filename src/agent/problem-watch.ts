import { type Clock, sleep } from "../kit/clock.ts";

/** Objects that are not in effect on this node, as of the last look. */
export interface ProblemWatch {
  /** Those that stay: while pods come and go, an object waits for another for a moment. Each as `OBJECT CODE`, ordered. */
  lasting(): readonly string[];
  done: Promise<void>;
}

export interface ProblemWatchOptions {
  /** Rows of the table `problems`: object, code, message. */
  problems: () => readonly (readonly string[])[];
  clock: Clock;
  signal: AbortSignal;
  /** Another problem lasts, or one is over. */
  onChange(): void;
  /** One that lasts from now on. */
  onLasting(object: string, code: string, message: string): void;
}

const PERIOD_MS = 5_000;
const LASTING_MS = 15_000;

export function watchProblems({ problems, clock, signal, onChange, onLasting }: ProblemWatchOptions): ProblemWatch {
  let since = new Map<string, number>();
  let lasting: readonly string[] = [];

  const look = (): void => {
    const now = clock.now();
    const rows = problems();
    since = new Map(
      rows.map(([object = "", code = ""]) => {
        const problem = `${object} ${code}`;
        return [problem, since.get(problem) ?? now] as const;
      }),
    );
    const found = [...since].flatMap(([problem, from]) => (now - from >= LASTING_MS ? [problem] : [])).sort();
    const isNews = found.join() !== lasting.join();
    for (const [object = "", code = "", message = ""] of rows) {
      const problem = `${object} ${code}`;
      if (found.includes(problem) && !lasting.includes(problem)) onLasting(object, code, message);
    }
    lasting = found;
    if (isNews) onChange();
  };

  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      look();
      await sleep(clock, PERIOD_MS, signal);
    }
  };

  return { lasting: () => lasting, done: loop() };
}
