import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { Gone, StoreConflict } from "./errors.ts";
import { openStore, type Stored, type WatchEvent } from "./store.ts";

const PODS = "/pods";

function pod(name: string, namespace = "default", more: Partial<KubeObject> = {}): KubeObject {
  return { apiVersion: "v1", kind: "Pod", metadata: { name, namespace, uid: `uid-of-${name}` }, ...more };
}

function names(list: readonly Stored[]): string[] {
  return list.map((stored) => `${stored.namespace}/${stored.name}`);
}

function told(events: readonly WatchEvent[]): string[] {
  return events.map(({ type, stored }) => `${type} ${stored.name} ${stored.revision}`);
}

/** Watchers are told after the write returned. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe("reading and writing", () => {
  it("keeps an object as the JSON a client will be sent, with its revision in it", async () => {
    const store = await openStore();
    const object = pod("web", "default", { spec: { nodeName: "a" } });
    object.metadata.labels = { app: "web" };
    const stored = store.put(PODS, object, "absent", { "spec.nodeName": "a" });
    expect(JSON.parse(stored.body.toString())).toEqual({
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name: "web",
        namespace: "default",
        uid: "uid-of-web",
        labels: { app: "web" },
        resourceVersion: String(stored.revision),
      },
      spec: { nodeName: "a" },
    });
    expect(store.get(PODS, "default", "web")).toBe(stored);
    expect(stored).toMatchObject({
      labels: { app: "web" },
      fields: { "spec.nodeName": "a" },
      uid: "uid-of-web",
      deleting: false,
    });
    expect(store.revision).toBe(stored.revision);
  });

  it("does not notice when the caller changes its object later", async () => {
    const store = await openStore();
    const object = pod("web");
    object.metadata.labels = { app: "web" };
    store.put(PODS, object, "absent");
    object.metadata.labels["app"] = "other";
    expect(store.get(PODS, "default", "web")?.labels).toEqual({ app: "web" });
  });

  it("says which objects are on their way out", async () => {
    const store = await openStore();
    const object = pod("web");
    object.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
    expect(store.put(PODS, object, "absent").deleting).toBe(true);
  });

  it("lists by namespace, then name, whatever the order of writing", async () => {
    const store = await openStore();
    for (const [namespace, name] of [
      ["b", "2"],
      ["a", "9"],
      ["b", "1"],
      ["a", "10"],
      ["b", "3"],
    ] as const) {
      store.put(PODS, pod(name, namespace), "absent");
    }
    store.put("/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: "n" } }, "absent");
    expect(names(store.list(PODS))).toEqual(["a/10", "a/9", "b/1", "b/2", "b/3"]);
    expect(names(store.list(PODS, "a"))).toEqual(["a/10", "a/9"]);
    expect(names(store.list("/nodes"))).toEqual(["/n"]);
    expect(store.list("/secrets")).toEqual([]);
    expect([store.count(PODS), store.count("/nodes"), store.count("/secrets")]).toEqual([5, 1, 0]);
  });

  it("starts above zero, because a client means `any` by resourceVersion 0", async () => {
    expect((await openStore()).revision).toBe(1);
  });

  it("takes no writes once closed", async () => {
    const store = await openStore();
    await store.close();
    await store.close();
    expect(() => store.put(PODS, pod("a"), "absent")).toThrow(expect.objectContaining({ code: "STORE_CLOSED" }));
  });
});

describe("compare and swap", () => {
  it("creates only what is absent", async () => {
    const store = await openStore();
    const first = store.put(PODS, pod("a"), "absent");
    expect(() => store.put(PODS, pod("a"), "absent")).toThrow(StoreConflict);
    expect(store.get(PODS, "default", "a")).toBe(first);
  });

  it("replaces and removes only the revision that was read, and tells the loser what is there", async () => {
    const store = await openStore();
    const read = store.put(PODS, pod("a"), "absent");
    const winner = store.put(PODS, pod("a"), read.revision);
    const loser = pod("a");
    expect(() => store.put(PODS, loser, read.revision)).toThrow(expect.objectContaining({ current: winner }));
    expect(loser.metadata.resourceVersion).toBeUndefined();
    expect(() => store.remove(PODS, "default", "a", read.revision)).toThrow(StoreConflict);
    expect(() => store.remove(PODS, "default", "missing", 1)).toThrow(StoreConflict);
    expect(store.revision).toBe(winner.revision);
  });

  it("gives back the last state when something is removed, under the revision of its removal", async () => {
    const store = await openStore();
    const created = store.put(PODS, pod("a", "default", { spec: { note: '"resourceVersion":"2"' } }), "absent");
    const last = store.remove(PODS, "default", "a", created.revision);
    expect(JSON.parse(last.body.toString())).toMatchObject({
      metadata: { resourceVersion: String(created.revision + 1) },
      spec: { note: '"resourceVersion":"2"' },
    });
    expect(store.get(PODS, "default", "a")).toBeUndefined();
  });
});

describe("watching", () => {
  it("tells every watcher the same events, in order, after the write returned", async () => {
    const store = await openStore();
    const one: WatchEvent[] = [];
    const two: WatchEvent[] = [];
    store.watch(PODS, store.revision, (event) => one.push(event));
    store.watch(PODS, store.revision, (event) => two.push(event));
    const a = store.put(PODS, pod("a"), "absent");
    const b = store.put(PODS, pod("a"), a.revision);
    store.remove(PODS, "default", "a", b.revision);
    expect(one).toEqual([]);
    await settled();
    expect(told(one)).toEqual(["ADDED a 2", "MODIFIED a 3", "DELETED a 4"]);
    expect(one.map((event) => event.previous?.revision)).toEqual([undefined, 2, 3]);
    expect(two.every((event, index) => event === one[index])).toBe(true);
  });

  it("resumes after the revision a client saw last, and from a revision still to come", async () => {
    const store = await openStore();
    for (const name of ["a", "b", "c"]) store.put(PODS, pod(name), "absent");
    await settled();
    const resumed: WatchEvent[] = [];
    const early: WatchEvent[] = [];
    store.watch(PODS, 2, (event) => resumed.push(event));
    expect(told(resumed)).toEqual(["ADDED b 3", "ADDED c 4"]);
    store.watch(PODS, 5, (event) => early.push(event));
    for (const name of ["d", "e"]) store.put(PODS, pod(name), "absent");
    await settled();
    expect(told(resumed)).toEqual(["ADDED b 3", "ADDED c 4", "ADDED d 5", "ADDED e 6"]);
    expect(told(early)).toEqual(["ADDED e 6"]);
  });

  it("keeps to one namespace and one resource", async () => {
    const store = await openStore();
    const events: WatchEvent[] = [];
    store.watch(PODS, 0, (event) => events.push(event), { namespace: "a" });
    store.put(PODS, pod("x", "a"), "absent");
    store.put(PODS, pod("y", "b"), "absent");
    store.put("/services", pod("z", "a"), "absent");
    await settled();
    expect(told(events)).toEqual(["ADDED x 2"]);
  });

  it("tells nothing more once stopped, even in the middle of a batch", async () => {
    const store = await openStore();
    const events: WatchEvent[] = [];
    const watch = store.watch(PODS, 0, (event) => {
      events.push(event);
      watch.stop();
    });
    store.put(PODS, pod("a"), "absent");
    store.put(PODS, pod("b"), "absent");
    await settled();
    expect(told(events)).toEqual(["ADDED a 2"]);
  });

  it("keeps the order when a watcher writes, or opens a watch, while it is being told", async () => {
    const store = await openStore();
    const nested: WatchEvent[] = [];
    const last: WatchEvent[] = [];
    store.watch(PODS, 0, ({ stored }) => {
      if (stored.name !== "a") return;
      store.put(PODS, pod("c"), "absent");
      store.watch(PODS, 0, (event) => nested.push(event));
    });
    store.watch(PODS, 0, (event) => last.push(event));
    store.put(PODS, pod("a"), "absent");
    store.put(PODS, pod("b"), "absent");
    await settled();
    expect(told(last)).toEqual(["ADDED a 2", "ADDED b 3", "ADDED c 4"]);
    expect(told(nested)).toEqual(told(last));
  });

  it("says Gone when the events after a revision are no longer kept", async () => {
    const store = await openStore({ historyPerResource: 3 });
    let { revision } = store.put(PODS, pod("a"), "absent");
    for (let i = 0; i < 20; i++) revision = store.put(PODS, pod("a"), revision).revision;
    store.put("/nodes", pod("n", ""), "absent");
    await settled();
    expect(() => store.watch(PODS, revision - 4, () => {})).toThrow(Gone);
    const events: WatchEvent[] = [];
    store.watch(PODS, revision - 3, (event) => events.push(event));
    expect(events.map((event) => event.stored.revision)).toEqual([revision - 2, revision - 1, revision]);
    // A quiet resource keeps its past whatever happens elsewhere.
    expect(() => store.watch("/nodes", 1, () => {})).not.toThrow();
  });

  it("keeps fewer events when they are big", async () => {
    const store = await openStore();
    let { revision } = store.put(PODS, pod("a"), "absent");
    for (let i = 0; i < 20; i++) {
      revision = store.put(PODS, pod("a", "default", { data: "x".repeat(1 << 20) }), revision).revision;
    }
    await settled();
    expect(() => store.watch(PODS, revision - 20, () => {})).toThrow(Gone);
    expect(() => store.watch(PODS, revision - 10, () => {})).not.toThrow();
  });

  it("sends bookmarks a client can resume from", async () => {
    const store = await openStore({ bookmarkEveryMs: 5 });
    store.put("/nodes", pod("n", ""), "absent");
    const revision = await new Promise<number>((resolve) => store.watch(PODS, 1, () => {}, { onBookmark: resolve }));
    expect(revision).toBe(2);
    await store.close();
  });

  it("ends when the store closes", async () => {
    const store = await openStore();
    let ended = 0;
    store.watch(PODS, 0, () => {}, { onEnd: () => ended++ });
    store.watch(PODS, 0, () => {}, { onEnd: () => ended++ }).stop();
    await store.close();
    expect(ended).toBe(1);
  });
});

describe("a list as it was", () => {
  it("shows every past state that is still kept", async () => {
    const store = await openStore();
    const a = store.put(PODS, pod("a", "x"), "absent");
    const b = store.put(PODS, pod("b", "y"), "absent");
    const changed = store.put(PODS, pod("a", "x"), a.revision);
    await settled();
    const removed = store.remove(PODS, "y", "b", b.revision);
    store.put(PODS, pod("aa", "x"), "absent");
    expect(store.listAt(PODS, 1)).toEqual([]);
    expect(store.listAt(PODS, a.revision)).toEqual([a]);
    expect(store.listAt(PODS, b.revision)).toEqual([a, b]);
    expect(store.listAt(PODS, b.revision, "y")).toEqual([b]);
    expect(store.listAt(PODS, changed.revision)).toEqual([changed, b]);
    expect(store.listAt(PODS, removed.revision)).toEqual([changed]);
    expect(store.listAt(PODS, store.revision)).toEqual(store.list(PODS));
  });

  it("says Gone for a past no longer kept and a future nobody knows", async () => {
    const store = await openStore({ historyPerResource: 1 });
    for (const name of ["a", "b", "c"]) store.put(PODS, pod(name), "absent");
    await settled();
    expect(() => store.listAt(PODS, 2)).toThrow(Gone);
    expect(names(store.listAt(PODS, 3))).toEqual(["default/a", "default/b"]);
    expect(() => store.listAt(PODS, 5)).toThrow(Gone);
  });
});

describe("dropping a resource", () => {
  it("deletes its objects, tells its watchers so, and ends them", async () => {
    const store = await openStore();
    const story: string[] = [];
    store.put("example.com/things", pod("a"), "absent");
    store.put("example.com/things", pod("b"), "absent");
    store.put(PODS, pod("stays"), "absent");
    await settled();
    store.watch("example.com/things", store.revision, (event) => story.push(...told([event])), {
      onEnd: () => story.push("end"),
    });
    store.dropResource("example.com/things");
    expect(store.count("example.com/things")).toBe(0);
    await settled();
    expect(story).toEqual(["DELETED a 5", "DELETED b 6", "end"]);
    expect(names(store.list(PODS))).toEqual(["default/stays"]);
    expect(() => store.watch("example.com/things", 2, () => {})).toThrow(Gone);
  });
});
