/** One end pushes lines, the other iterates them; either end may close. What was pushed before a failure is still delivered. */
export interface Line {
  push(line: string): void;
  end(): void;
  fail(error: Error): void;
  onClosed(fn: () => void): void;
  lines(): AsyncIterableIterator<string>;
}

export function lineStream(signal?: AbortSignal): Line {
  const buffered: string[] = [];
  const closed: (() => void)[] = [];
  let over: { error?: unknown } | undefined;
  let wake: () => void = () => {};

  const finish = (how: { error?: unknown }) => {
    over ??= how;
    for (const fn of closed.splice(0)) fn();
    wake();
  };
  signal?.addEventListener("abort", () => finish({ error: signal.reason }), { once: true });

  return {
    push(line) {
      if (over === undefined) buffered.push(line);
      wake();
    },
    end: () => finish({}),
    fail: (error) => finish({ error }),
    onClosed: (fn) => void closed.push(fn),
    async *lines() {
      try {
        for (;;) {
          if (signal?.aborted) throw signal.reason;
          const line = buffered.shift();
          if (line !== undefined) {
            yield line;
            continue;
          }
          if (over !== undefined) {
            if (over.error !== undefined) throw over.error;
            return;
          }
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      } finally {
        finish({});
      }
    },
  };
}
