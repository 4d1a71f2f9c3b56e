import type { KubeObject } from "../api/object.ts";
import type { Client } from "./client.ts";
import type { WatchEvent } from "./watch-events.ts";

/** The same client, but lists and watches give objects cut down to what the reader keeps, before a cache holds on to them. */
export function slimReading<T extends KubeObject>(client: Client, slim: (object: T) => KubeObject): Client {
  const cut = <O extends KubeObject>(object: O): O => slim(object as unknown as T) as unknown as O;
  return {
    ...client,
    async listPage(kind, options) {
      const page = await client.listPage(kind, options);
      return { ...page, items: page.items.map((item) => cut(item)) as never[] };
    },
    watch: (kind, options) => slimEvents(client.watch(kind, options), cut) as AsyncIterable<never>,
  };
}

async function* slimEvents<T extends KubeObject>(
  events: AsyncIterable<WatchEvent<T>>,
  cut: (object: T) => T,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  for await (const event of events) {
    yield event.type === "BOOKMARK" ? event : { type: event.type, object: cut(event.object) };
  }
}
