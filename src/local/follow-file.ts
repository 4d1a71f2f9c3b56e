import { createReadStream, existsSync, readFileSync, statSync, watch } from "node:fs";

export interface FollowOptions {
  tail?: number;
  follow: boolean;
  signal: AbortSignal;
}

/** The lines of a file, and with `follow` those that are added to it, until the signal aborts or the file is gone. */
export async function* followFile(path: string, options: FollowOptions): AsyncIterable<string> {
  if (!existsSync(path)) return;
  const whole = readFileSync(path);
  const lines = whole.toString().split("\n");
  let rest = lines.pop() ?? "";
  yield* options.tail === undefined ? lines : lines.slice(Math.max(0, lines.length - options.tail));
  if (!options.follow) {
    if (rest !== "") yield rest;
    return;
  }
  let at = whole.length;
  for await (const _ of changesOf(path, options.signal)) {
    if (!existsSync(path)) return;
    const size = statSync(path).size;
    if (size <= at) continue;
    for await (const chunk of createReadStream(path, { start: at, end: size - 1, encoding: "utf8" })) rest += chunk;
    at = size;
    const added = rest.split("\n");
    rest = added.pop() ?? "";
    yield* added;
  }
}

async function* changesOf(path: string, signal: AbortSignal): AsyncIterable<void> {
  let changed = true;
  let wake = () => {};
  const watcher = watch(path, () => {
    changed = true;
    wake();
  });
  signal.addEventListener("abort", () => wake(), { once: true });
  try {
    while (!signal.aborted) {
      if (changed) {
        changed = false;
        yield;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (changed || signal.aborted) resolve();
        });
      }
    }
  } finally {
    watcher.close();
  }
}
