import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Api, startApi } from "../support/api.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";
const configMap = (name: string, labels: Record<string, string> = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, labels },
});

// biome-ignore lint/suspicious/noExplicitAny: a story reads whatever the server sent.
type Event = { type: string; object: any };

/** Reads a watch line by line until told to stop. */
async function open(api: Api, query: string, headers: Record<string, string> = {}) {
  const stop = new AbortController();
  const response = await fetch(`${api.url}${MAPS}?watch=true&${query}`, { signal: stop.signal, headers });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const next = async (): Promise<Event | undefined> => {
    for (;;) {
      const end = text.indexOf("\n");
      if (end >= 0) {
        const line = text.slice(0, end);
        text = text.slice(end + 1);
        return JSON.parse(line) as Event;
      }
      const { value, done } = await reader.read();
      if (done) return undefined;
      text += value;
    }
  };
  return { next, stop: () => stop.abort() };
}

const told = (event: Event | undefined) => `${event?.type} ${event?.object.metadata?.name}`;

describe("a watch", () => {
  let api: Api;
  beforeEach(async () => {
    api = await startApi();
  });
  afterEach(() => api.close());

  it("starts with what is there, then follows", async () => {
    await api.create(MAPS, configMap("a"));
    const watch = await open(api, "");
    expect(told(await watch.next())).toBe("ADDED a");
    await api.create(MAPS, configMap("b"));
    expect(told(await watch.next())).toBe("ADDED b");
    await api.call("DELETE", `${MAPS}/a`);
    const gone = (await watch.next())!;
    expect(told(gone)).toBe("DELETED a");
    expect(Number(gone.object.metadata.resourceVersion)).toBeGreaterThan(0);
    watch.stop();
  });

  it("resumes after a revision, and says when that is too long ago", async () => {
    const first = (await api.create(MAPS, configMap("a"))).body.metadata.resourceVersion;
    await api.create(MAPS, configMap("b"));
    const watch = await open(api, `resourceVersion=${first}`);
    expect(told(await watch.next())).toBe("ADDED b");
    watch.stop();
    const ancient = await open(api, "resourceVersion=1");
    expect(await ancient.next()).toMatchObject({ type: "ERROR", object: { code: 410, reason: "Expired" } });
    expect(await ancient.next()).toBeUndefined();
  });

  it("with a selector, an object that stops matching is deleted and one that starts is added", async () => {
    await api.create(MAPS, configMap("m", { on: "no" }));
    const watch = await open(api, "labelSelector=on%3Dyes");
    const relabel = (on: string) =>
      api.call("PATCH", `${MAPS}/m`, { type: "application/merge-patch+json", body: { metadata: { labels: { on } } } });
    await relabel("yes");
    expect(told(await watch.next())).toBe("ADDED m");
    await relabel("no");
    expect(told(await watch.next())).toBe("DELETED m");
    watch.stop();
  });

  it("sends the initial state as events and marks where it ends, when asked", async () => {
    await api.create(MAPS, configMap("a"));
    const watch = await open(api, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
    expect(told(await watch.next())).toBe("ADDED a");
    const mark = (await watch.next())!;
    expect(mark.type).toBe("BOOKMARK");
    expect(mark.object.metadata.annotations).toEqual({ "k8s.io/initial-events-end": "true" });
    watch.stop();
  });

  it("starts with a state of any size, at the reader's pace", async () => {
    const large = (name: string) => ({ ...configMap(name), data: { text: "x".repeat(1_000_000) } });
    for (let i = 10; i < 30; i++) await api.create(MAPS, large(`m-${i}`));
    const watch = await open(api, "");
    for (let i = 10; i < 30; i++) expect(told(await watch.next())).toBe(`ADDED m-${i}`);
    await api.create(MAPS, configMap("after"));
    expect(told(await watch.next())).toBe("ADDED after");
    watch.stop();
  });

  it("ends by itself after its time, with a bookmark to resume from", async () => {
    const watch = await open(api, "timeoutSeconds=1&allowWatchBookmarks=true");
    expect((await watch.next())?.type).toBe("BOOKMARK");
    expect(await watch.next()).toBeUndefined();
  });

  it("comes as table rows for `kubectl get -w`, the header once", async () => {
    const watch = await open(api, "", { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" });
    await api.create(MAPS, configMap("a"));
    await api.create(MAPS, configMap("b"));
    const first = (await watch.next())!;
    expect(first.object.columnDefinitions).toHaveLength(3);
    expect(first.object.rows[0].cells[0]).toBe("a");
    expect((await watch.next())!.object.columnDefinitions).toEqual([]);
    watch.stop();
  });
});
