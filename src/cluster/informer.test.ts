import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { type FakeClock, fakeClock } from "../kit/fake-clock.ts";
import { createClient } from "./client.ts";
import { createInformer } from "./informer.ts";
import { CONFIG_MAPS } from "./kinds.ts";
import type { Change } from "./object-cache.ts";
import { type ScriptedServer, scriptedServer } from "./testing/scripted-server.ts";

const THINGS = "/api/v1/configmaps";

/** A server, an informer on it, and time in our hands. */
function world(options: { pageSize?: number; silenceMs?: number } = {}) {
  const server = scriptedServer();
  const clock = fakeClock();
  const failures: unknown[] = [];
  const client = createClient(server.transport(), { userAgent: "test", clock });
  const open = () =>
    createInformer<KubeObject>(client, CONFIG_MAPS, {
      clock,
      random: () => 0.5,
      onError: (error) => failures.push(error),
      ...options,
    });
  return { server, clock, open, failures };
}

const said = (changes: Change<KubeObject>[]) =>
  changes.map(({ type, key, object }) => `${type} ${key}@${object.metadata.resourceVersion}`);

const cached = (objects: KubeObject[]) =>
  objects.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`).sort();

/** Back-off ends within a minute; what has not settled after several never will. */
async function settle(clock: FakeClock, server: ScriptedServer, objects: () => KubeObject[]): Promise<void> {
  for (let minute = 0; minute < 8; minute++) {
    await clock.advance(60_000);
    if (cached(objects()).join() === cached(server.objects(THINGS)).join()) return;
  }
}

describe("an informer", () => {
  it("has everything there is once synced, in pages if there is much", async () => {
    const { server, open, clock } = world({ pageSize: 2 });
    for (const name of ["a", "b", "c", "d", "e"]) server.set(THINGS, name);
    const informer = open();
    await informer.synced;
    expect(cached(informer.list())).toEqual(["a@101", "b@102", "c@103", "d@104", "e@105"]);
    await clock.advance(0);
    expect(server.log.map(({ query }) => query?.["continue"] ?? query?.["watch"])).toEqual([
      undefined,
      "105:2",
      "105:4",
      "true",
    ]);
    await informer.stop();
  });

  it("tells of what is there and of every change, once the cache has it", async () => {
    const { server, open, clock } = world();
    server.set(THINGS, "a");
    const informer = open();
    await informer.synced;
    const changes: Change<KubeObject>[] = [];
    informer.onChange((change) => {
      expect(informer.get(change.key)).toBe(change.type === "deleted" ? undefined : change.object);
      changes.push(change);
    });
    server.set(THINGS, "b");
    server.set(THINGS, "a", { data: { x: "1" } });
    server.remove(THINGS, "a");
    await clock.advance(0);
    expect(said(changes)).toEqual(["added a@101", "added b@102", "modified a@103", "deleted a@104"]);
    expect(changes[2]?.old?.metadata.resourceVersion).toBe("101");
    await informer.stop();
  });

  it("knows the objects of one namespace", async () => {
    const { server, open } = world();
    server.set(THINGS, "a", { metadata: { name: "a", namespace: "one" } });
    server.set(THINGS, "b", { metadata: { name: "b", namespace: "two" } });
    const informer = open();
    await informer.synced;
    expect(informer.list("one").map(({ metadata }) => metadata.name)).toEqual(["a"]);
    expect(informer.list("none")).toEqual([]);
    expect(informer.get("two/b")?.metadata.name).toBe("b");
    await informer.stop();
  });

  it("goes on telling the others when one listener throws", async () => {
    const { server, open, clock, failures } = world();
    const informer = open();
    await informer.synced;
    const heard: string[] = [];
    informer.onChange(() => {
      throw new Error("listener");
    });
    informer.onChange(({ key }) => heard.push(key));
    server.set(THINGS, "a");
    await clock.advance(0);
    expect(heard).toEqual(["a"]);
    expect(failures).toEqual([new Error("listener")]);
    await informer.stop();
  });

  const FAULTS: [string, (server: ScriptedServer) => void][] = [
    ["the server ends the watch", (server) => server.breakWatches("clean")],
    ["the connection breaks", (server) => server.breakWatches("broken")],
    ["the connection breaks in the middle of an event", (server) => server.breakWatches("midLine")],
    ["a line is not JSON", (server) => server.send("<html>")],
    ["a line is JSON but no event", (server) => server.send('{"type":"ADDED"}')],
    ["the stream reports an error", (server) => server.send('{"type":"ERROR","object":{"kind":"Status","code":500}}')],
    [
      "the API restarts, and resumed watches repeat old events",
      (server) => {
        server.repeatOnResume(5);
        server.breakWatches("broken");
        server.failNext(4, "refuse");
      },
    ],
    [
      "the server is busy for a while",
      (server) => {
        server.breakWatches("clean");
        server.failNext(8, 503);
      },
    ],
    [
      "the history is gone",
      (server) => {
        server.compact();
        server.breakWatches("broken");
      },
    ],
  ];

  it.each(FAULTS)("misses and doubles nothing when %s", async (_name, fault) => {
    const { server, open, clock } = world({ pageSize: 2 });
    for (const name of ["keep", "change", "drop", "again"]) server.set(THINGS, name);
    const informer = open();
    await informer.synced;
    await clock.advance(0);
    const changes: Change<KubeObject>[] = [];
    informer.onChange((change) => changes.push(change));
    fault(server);
    server.set(THINGS, "change");
    server.remove(THINGS, "drop");
    server.remove(THINGS, "again");
    server.set(THINGS, "again");
    server.set(THINGS, "new");
    await settle(clock, server, informer.list);
    expect(cached(informer.list())).toEqual(cached(server.objects(THINGS)));
    const news = said(changes.slice(4)).sort();
    const deletions = news.filter((line) => line.startsWith("deleted")).map((line) => line.split("@")[0]);
    expect(deletions).toEqual(["deleted again", "deleted drop"]);
    expect(news.filter((line) => !line.startsWith("deleted")).map((line) => line.split("@")[0])).toEqual([
      "added again",
      "added new",
      "modified change",
    ]);
    await informer.stop();
  });

  it("asks anew when nothing at all comes for too long, and resumes without a list", async () => {
    const { server, open, clock } = world({ silenceMs: 100_000 });
    const informer = open();
    await informer.synced;
    await clock.advance(60_000);
    server.bookmark();
    await clock.advance(60_000);
    expect(server.log).toHaveLength(2);
    await clock.advance(60_000);
    expect(server.log.map(({ query }) => query?.["watch"])).toEqual([undefined, "true", "true"]);
    await informer.stop();
  });

  it("gives up on a list that hangs and asks again", async () => {
    const { server, open, clock } = world({ silenceMs: 5_000 });
    server.set(THINGS, "a");
    server.hang(true);
    const informer = open();
    await clock.advance(6_000);
    server.hang(false);
    await clock.advance(60_000);
    expect(cached(informer.list())).toEqual(["a@101"]);
    await informer.stop();
  });

  it("resumes from a bookmark, so that a quiet kind outlives the server's history", async () => {
    const { server, open, clock } = world();
    const informer = open();
    await informer.synced;
    await clock.advance(0);
    server.compact();
    server.bookmark();
    await clock.advance(0);
    server.breakWatches("broken");
    server.set(THINGS, "a");
    await settle(clock, server, informer.list);
    expect(server.log.filter(({ query }) => query?.["watch"] === undefined)).toHaveLength(1);
    await informer.stop();
  });

  it("does not storm a server that refuses: tries come further and further apart", async () => {
    const { server, open, clock, failures } = world();
    server.failNext(10_000, "refuse");
    const informer = open();
    await clock.advance(10 * 60_000);
    expect(server.log.length).toBeGreaterThan(10);
    expect(server.log.length).toBeLessThan(40);
    expect(failures.length).toBe(server.log.length);
    await informer.stop();
  });

  it("stops while waiting, while asking and while watching", async () => {
    for (const prepare of [
      (server: ScriptedServer) => server.failNext(100, "refuse"),
      (server: ScriptedServer) => server.hang(true),
      () => {},
    ]) {
      const { server, open, clock } = world();
      prepare(server);
      const informer = open();
      await clock.advance(100);
      await informer.stop();
      expect(server.watches).toBe(0);
    }
  });
});

type Act = (server: ScriptedServer, clock: FakeClock) => void | Promise<void>;
const names = fc.constantFrom("a", "b", "c", "d", "e");
const acts: fc.Arbitrary<[string, Act]> = fc.oneof(
  { weight: 6, arbitrary: names.map((name): [string, Act] => [`set ${name}`, (s) => void s.set(THINGS, name)]) },
  { weight: 4, arbitrary: names.map((name): [string, Act] => [`remove ${name}`, (s) => s.remove(THINGS, name)]) },
  {
    weight: 4,
    arbitrary: fc.nat(4_000).map((ms): [string, Act] => [`${ms} ms pass`, (_, clock) => clock.advance(ms)]),
  },
  fc
    .constantFrom("clean" as const, "broken" as const, "midLine" as const)
    .map((how): [string, Act] => [`watch ends ${how}`, (s) => s.breakWatches(how)]),
  fc.constant<[string, Act]>(["compact", (s) => s.compact()]),
  fc.constant<[string, Act]>(["bookmark", (s) => s.bookmark()]),
  fc.constant<[string, Act]>(["bad line", (s) => s.send("]]")]),
  fc.constant<[string, Act]>([
    "error in the stream",
    (s) => s.send('{"type":"ERROR","object":{"kind":"Status","code":500,"reason":"InternalError"}}'),
  ]),
  fc
    .tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom(500, 503, 429, 410, "refuse" as const))
    .map(([count, how]): [string, Act] => [`${count} x ${how}`, (s) => s.failNext(count, how)]),
  fc.nat(4).map((count): [string, Act] => [`repeat ${count} on resume`, (s) => s.repeatOnResume(count)]),
  fc.boolean().map((on): [string, Act] => [on ? "hang" : "answer again", (s) => s.hang(on)]),
);

describe("whatever the server goes through", () => {
  it("the cache ends like the server, and no version is told twice or out of order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(acts, { maxLength: 40 }), async (script) => {
        const { server, open, clock } = world({ pageSize: 2, silenceMs: 20_000 });
        for (const name of ["a", "b", "c"]) server.set(THINGS, name);
        const informer = open();
        const changes: Change<KubeObject>[] = [];
        informer.onChange((change) => changes.push(change));
        for (const [, act] of script) await act(server, clock);
        server.hang(false);
        server.failNext(0, 500);
        await settle(clock, server, informer.list);
        await informer.stop();

        expect(cached(informer.list())).toEqual(cached(server.objects(THINGS)));
        expect(replay(changes)).toEqual(cached(informer.list()));
      }),
      { numRuns: 200 },
    );
  });
});

/** Applies the changes as a listener would, refusing what no honest stream can hold. */
function replay(changes: Change<KubeObject>[]): string[] {
  const present = new Map<string, KubeObject>();
  const newest = new Map<string, number>();
  for (const { type, key, object } of changes) {
    const version = Number(object.metadata.resourceVersion);
    expect(present.has(key), `${type} ${key}`).toBe(type !== "added");
    if (type === "deleted") {
      present.delete(key);
      continue;
    }
    expect(version, `${key} is new`).toBeGreaterThan(newest.get(key) ?? 0);
    newest.set(key, version);
    present.set(key, object);
  }
  return cached([...present.values()]);
}
