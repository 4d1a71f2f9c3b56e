import { existsSync } from "node:fs";
import { followFile } from "../../follow-file.ts";
import type { LogOptions } from "../node-runtime.ts";

/** One line of a log as a container runtime writes it: `TIME STREAM TAGS TEXT`. A line that was split has the tag `P` on all parts but the last. */
export async function* readCriLog(
  path: string,
  { follow = false, tailLines, signal }: LogOptions,
): AsyncIterable<string> {
  const stop = signal ?? new AbortController().signal;
  const lines = whole(followFile(path, { follow, signal: stop }));
  if (tailLines === undefined || !existsSync(path)) return yield* lines;
  // Lines are counted when they are put together, and that is known only at the end of what is there.
  const present: string[] = [];
  for await (const line of whole(followFile(path, { follow: false, signal: stop }))) present.push(line);
  let skip = Math.max(0, present.length - tailLines);
  for await (const line of lines) {
    if (skip > 0) skip--;
    else yield line;
  }
}

/** Each line behind its time, as `kubectl logs` expects it of a node. */
async function* whole(parts: AsyncIterable<string>): AsyncIterable<string> {
  let begun: { time: string; text: string } | undefined;
  for await (const part of parts) {
    const [, time = "", tags = "", text = ""] = /^(\S+) \S+ (\S+) (.*)$/s.exec(part) ?? [];
    if (time === "") continue;
    begun = { time: begun?.time ?? time, text: (begun?.text ?? "") + text };
    if (tags.split(":")[0] === "P") continue;
    yield `${begun.time} ${begun.text}`;
    begun = undefined;
  }
  if (begun) yield `${begun.time} ${begun.text}`;
}
