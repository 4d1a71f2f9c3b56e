import type { KubeObject } from "../api/object.ts";
import type { Status } from "../api/status.ts";
import type { Reply, Sink } from "../apiserver/call.ts";
import { eventLine, type Shaper } from "../apiserver/shape.ts";
import { collectionPath } from "../cluster/paths.ts";
import type { StoredList } from "./backend.ts";
import { type Parts, shaper, storedPath, type V3Request, type Verb } from "./request.ts";
import { type Selection, selectionOf } from "./selection.ts";
import { statusToServed } from "./translate-status.ts";

export const get: Verb = async (parts, asked) => {
  const shape = shaper(parts, asked);
  const { signal } = asked.incoming;
  const { body } = await parts.backend.json<KubeObject>({ method: "GET", path: storedPath(parts, asked), signal });
  return shape.one(parts.translator.toServed(asked.kind, body));
};

export const list: Verb = async (parts, asked) => {
  const shape = shaper(parts, asked);
  const { items, metadata } = await selected(parts, asked);
  return shape.list(items, metadata);
};

/** What a request selects, as people see it. */
export async function selected(
  parts: Parts,
  asked: V3Request,
): Promise<{ items: KubeObject[]; metadata: Record<string, unknown> }> {
  const { kind, info, incoming } = asked;
  const selection = await selectionOf(parts, asked);
  const path = collectionPath(kind.stored, info.namespace);
  const request = { method: "GET", path, query: selection.query, signal: incoming.signal } as const;
  const { body } = await parts.backend.json<StoredList>(request);
  const items: KubeObject[] = [];
  for (const item of body.items ?? []) {
    const object = parts.translator.toServed(kind, item);
    if (await selection.keeps(object)) items.push(object);
  }
  const { remainingItemCount, ...metadata } = body.metadata ?? {};
  const counted = remainingItemCount !== undefined && !selection.filters;
  return { items, metadata: { ...metadata, ...(counted && { remainingItemCount }) } };
}

/** Events line by line as they come. The main API server's watch ends with ours, and ours with it. */
export const watch: Verb = async (parts, asked) => {
  const { kind, info, incoming } = asked;
  const shape = shaper(parts, asked);
  const selection = await selectionOf(parts, asked);
  const left = new AbortController();
  const signal = AbortSignal.any([incoming.signal, left.signal, parts.stopping]);
  const path = collectionPath(kind.stored, info.namespace);
  const lines = await parts.backend.lines({
    method: "GET",
    path,
    query: { ...selection.query, watch: "true" },
    signal,
  });
  const stream = (sink: Sink) => {
    sink.signal.addEventListener("abort", () => left.abort(), { once: true });
    void follow(parts, asked, { lines, selection, shape, sink }).finally(() => {
      left.abort();
      sink.end();
    });
  };
  return { status: 200, stream } satisfies Reply;
};

interface Followed {
  lines: AsyncIterable<string>;
  selection: Selection;
  shape: Shaper;
  sink: Sink;
}

async function follow(parts: Parts, { kind }: V3Request, { lines, selection, shape, sink }: Followed): Promise<void> {
  try {
    for await (const line of lines) {
      if (line.trim() === "") continue;
      const { type, object } = JSON.parse(line) as { type: string; object: KubeObject };
      const text = await eventText(type, object);
      if (text !== undefined && !sink.write(text)) return;
    }
  } catch {
    // The connection broke, or the client left: either way the stream ends, and the client lists again.
  }

  async function eventText(type: string, object: KubeObject): Promise<string | undefined> {
    if (type === "ERROR") {
      return eventLine(type, statusToServed(object as unknown as Status, kind, parts.translator));
    }
    const served = parts.translator.toServed(kind, object);
    if (type !== "BOOKMARK" && !(await selection.keeps(served))) return undefined;
    return shape.event(type, served);
  }
}
