import { createInterface } from "node:readline";
import { Gone } from "../../src/apiserver/storage/errors.ts";
import { openStore, type Stored } from "../../src/apiserver/storage/store.ts";
import type { ObservedState } from "./harness.ts";
import type { Answer, Request } from "./store-target.ts";

/** The store in a process of its own: a request a line on stdin, an answer a line on stdout. Writes are answered when durable. */
const RESOURCE = "/configmaps";

/** Small, so that snapshots are cut off too, and watchers that were away long enough have to list. */
const store = await openStore({ dataDir: process.argv[2], snapshotAfterBytes: 20_000, historyPerResource: 40 });

function seen(stored: Stored, removed = false): ObservedState {
  const { data } = JSON.parse(stored.body.toString()) as { data: string };
  return { name: stored.name, value: removed ? undefined : data, revision: stored.revision };
}

function say(answer: Answer): void {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

function write({ name, value, expect }: Extract<Request, { do: "write" }>): number {
  if (value === undefined) return store.remove(RESOURCE, "", name, expect as number).revision;
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: value };
  return store.put(RESOURCE, object, expect).revision;
}

async function answer(request: Request): Promise<Answer> {
  const { id } = request;
  switch (request.do) {
    case "write": {
      const revision = write(request);
      await store.durable(revision);
      return { id, revision };
    }
    case "list": {
      const { revision } = store;
      const items = store.list(RESOURCE).map((stored) => seen(stored));
      await store.durable(revision);
      return { id, revision, items };
    }
    case "watch":
      try {
        store.watch(RESOURCE, request.from, ({ type, stored }) => say({ id, event: seen(stored, type === "DELETED") }));
        return { id, watch: "open" };
      } catch (error) {
        if (error instanceof Gone) return { id, watch: "gone" };
        throw error;
      }
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const request = JSON.parse(line) as Request;
  answer(request).then(say, (error: Error) => say({ id: request.id, error: error.message }));
});
say({ id: 0, ready: true });
