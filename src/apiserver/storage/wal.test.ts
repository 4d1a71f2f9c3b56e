import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { type DurableOptions, openDurableStore } from "./durable-store.ts";
import { Gone } from "./errors.ts";
import { FakeDisk } from "./fake-disk.ts";
import { MAX_WAITING } from "./object-store.ts";
import type { Store, WatchEvent } from "./store.ts";

const MAPS = "/configmaps";
const LOG_1 = "log-0000000001";

function open(disk: FakeDisk, more: Partial<DurableOptions> = {}): Promise<Store> {
  return openDurableStore(disk, { historyPerResource: 4096, firstRevision: 1, ...more });
}

function map(name: string, value = "v"): KubeObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: "n", labels: { app: name } },
    data: { value },
  };
}

async function create(store: Store, name: string, value?: string): Promise<number> {
  const { revision } = store.put(MAPS, map(name, value), "absent", { "data.value": value ?? "v" });
  await store.durable(revision);
  return revision;
}

function names(store: Store): string[] {
  return store.list(MAPS).map((stored) => stored.name);
}

function told(store: Store, from: number): string[] {
  const events: WatchEvent[] = [];
  store.watch(MAPS, from, (event) => events.push(event)).stop();
  return events.map(({ type, stored }) => `${type} ${stored.name} ${stored.revision}`);
}

const coded = (code: string, sentence: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(sentence), fix: expect.stringMatching(/./) });

describe("what is acknowledged", () => {
  it("is there after a restart, to the byte and with all that selectors ask for", async () => {
    const disk = new FakeDisk();
    const store = await open(disk);
    await create(store, "a", "ä\u2028");
    await create(store, "b");
    store.remove(MAPS, "n", "b", store.get(MAPS, "n", "b")!.revision);
    const before = store.list(MAPS);
    await store.close();
    expect((await open(disk.afterKill())).list(MAPS)).toEqual(before);
  });

  it("is told to watchers and waiters only when it is on disk, all of a turn with one sync", async () => {
    const disk = new FakeDisk();
    const store = await open(disk);
    const story: string[] = [];
    store.watch(MAPS, store.revision, (event) => story.push(`told ${event.stored.name}`));
    const before = disk.operations;
    const writes = ["a", "b", "c"].map((name) => store.put(MAPS, map(name), "absent").revision);
    expect(names(store)).toEqual(["a", "b", "c"]);
    await Promise.all(writes.map((revision) => store.durable(revision).then(() => story.push("durable"))));
    expect(disk.operations - before).toBe(2);
    expect(story).toEqual(["told a", "told b", "told c", "durable", "durable", "durable"]);
  });

  it("is not told early to a watch that is opened meanwhile, nor twice", async () => {
    const store = await open(new FakeDisk());
    const { revision } = store.put(MAPS, map("a"), "absent");
    const events: WatchEvent[] = [];
    store.watch(MAPS, 1, (event) => events.push(event));
    expect(events).toEqual([]);
    await store.durable(revision);
    expect(events.map((event) => event.stored.revision)).toEqual([revision]);
  });

  it("can be listed as it was while newer writes are still on their way", async () => {
    const store = await open(new FakeDisk());
    const first = await create(store, "a");
    store.put(MAPS, map("b"), "absent");
    expect(store.listAt(MAPS, first).map((stored) => stored.name)).toEqual(["a"]);
  });
});

describe("a restart", () => {
  it("lets watches go on where they were, across every restart the log reaches", async () => {
    let disk = new FakeDisk();
    let store = await open(disk);
    const a = await create(store, "a");
    const b = await create(store, "b");
    for (let restart = 1; restart <= 3; restart++) {
      disk = disk.afterKill();
      store = await open(disk);
      expect(store.revision).toBe(restart * 1_000_000);
      await create(store, `c${restart}`);
    }
    const later = ["ADDED c1 1000001", "ADDED c2 2000001", "ADDED c3 3000001"];
    expect(told(store, a)).toEqual([`ADDED b ${b}`, ...later]);
    expect(told(store, b)).toEqual(later);
    expect(told(store, 2_000_000)).toEqual(later.slice(1));
    expect(store.listAt(MAPS, b).map((stored) => stored.name)).toEqual(["a", "b"]);
  });

  it("says Gone to whoever saw a revision that was lost", async () => {
    const disk = new FakeDisk();
    const store = await open(disk);
    const kept = await create(store, "kept");
    const { revision: lost } = store.put(MAPS, map("lost"), "absent");
    const second = disk.afterPowerLoss(() => 0);
    const again = await open(second);
    expect(names(again)).toEqual(["kept"]);
    expect(() => again.watch(MAPS, lost, () => {})).toThrow(Gone);
    expect(() => again.watch(MAPS, 999_999, () => {})).toThrow(Gone);
    expect(() => again.listAt(MAPS, lost)).toThrow(Gone);
    expect(told(again, kept)).toEqual([]);
    // Also after one more restart.
    const third = await open(second.afterPowerLoss(() => 0));
    expect(() => third.watch(MAPS, lost, () => {})).toThrow(Gone);
  });

  it("never hands a revision out again, however many were waiting for the disk", async () => {
    const disk = new FakeDisk();
    const store = await open(disk, { firstRevision: 950_000 });
    await create(store, "durable");
    for (let i = 0; i < MAX_WAITING; i++) store.put("/events", map(`e${i}`), "absent");
    expect(() => store.put("/events", map("one-more"), "absent")).toThrow(
      coded("STORE_BACKLOG", /^100000 writes are waiting for the disk/),
    );
    const handedOut = store.revision;
    const again = await open(disk.afterPowerLoss(() => 0));
    expect(again.count("/events")).toBe(0);
    expect(again.revision).toBeGreaterThan(handedOut);
  });
});

describe("a write that a crash cut off", () => {
  it("is dropped wherever it was cut, and everything before it is kept", async () => {
    const disk = new FakeDisk();
    const store = await open(disk);
    await create(store, "a");
    const good = disk.size(LOG_1);
    await create(store, "b");
    const whole = disk.size(LOG_1);
    for (let cut = good; cut < whole; cut++) {
      const torn = disk.afterKill();
      await torn.truncate(LOG_1, cut);
      const again = await open(torn);
      expect(names(again)).toEqual(["a"]);
      expect(torn.size(LOG_1)).toBe(good);
      // The next server finds nothing amiss.
      await create(again, "c");
      expect(names(await open(torn.afterKill()))).toEqual(["a", "c"]);
    }
  });

  it("is dropped whole when its blocks reached the disk in the wrong order", async () => {
    const disk = new FakeDisk();
    const store = await open(disk);
    await create(store, "a");
    const good = disk.size(LOG_1);
    for (const name of ["b", "c", "d"]) store.put(MAPS, map(name), "absent");
    await store.durable(store.revision);
    for (let at = good; at < disk.size(LOG_1); at += 7) {
      const torn = disk.afterKill();
      torn.damage(LOG_1, at);
      expect(names(await open(torn))).toEqual(["a"]);
    }
  });
});

describe("damage", () => {
  it("in the middle of the log is an error that names file and byte, and changes nothing", async () => {
    const disk = new FakeDisk();
    const store = await open(disk);
    await create(store, "a");
    const start = disk.size(LOG_1);
    await create(store, "b");
    const end = disk.size(LOG_1);
    await create(store, "c");
    for (let at = start; at < end; at++) {
      const bad = disk.afterKill();
      bad.damage(LOG_1, at);
      await expect(open(bad)).rejects.toThrow(
        coded("STORE_CORRUPT", new RegExp(`^fake/${LOG_1} is damaged at byte ${start}:`)),
      );
      expect(bad.size(LOG_1)).toBe(disk.size(LOG_1));
    }
  });

  it("at the end of the log is told from a crash when the server was stopped in order", async () => {
    const disk = new FakeDisk();
    const store = await open(disk);
    await create(store, "a");
    const end = disk.size(LOG_1);
    await store.close();
    disk.damage(LOG_1, end - 1);
    await expect(open(disk.afterKill())).rejects.toThrow(coded("STORE_CORRUPT", /checksum/));
  });

  it("that cut a finished log file short is noticed by the writes that are missing", async () => {
    const disk = new FakeDisk();
    const store = await open(disk);
    const start = disk.size(LOG_1);
    await create(store, "a");
    const second = disk.afterKill();
    await open(second);
    await second.truncate(LOG_1, start);
    await expect(open(second.afterKill())).rejects.toThrow(coded("STORE_CORRUPT", /write 1 is missing before write 2/));
  });

  it("that lost a whole file is an error that names the file", async () => {
    const disk = new FakeDisk();
    await create(await open(disk), "a");
    const second = disk.afterKill();
    await open(second);
    await second.remove(LOG_1);
    await expect(open(second.afterKill())).rejects.toThrow(coded("STORE_INCOMPLETE", /lacks its file log-0000000001/));
  });
});

describe("snapshots", () => {
  const small = { snapshotAfterBytes: 2_000 };

  /** Writes, changes and removes, until several snapshots have been made. Returns what was acknowledged. */
  async function busy(store: Store, rounds: number): Promise<Map<string, number>> {
    const acknowledged = new Map<string, number>();
    try {
      for (let i = 0; i < rounds; i++) {
        const name = `m${i % 7}`;
        const current = store.get(MAPS, "n", name);
        const stored =
          current !== undefined && i % 5 === 0
            ? store.remove(MAPS, "n", name, current.revision)
            : store.put(MAPS, map(name, "x".repeat(i % 90)), current?.revision ?? "absent");
        await store.durable(stored.revision);
        if (current !== undefined && i % 5 === 0) acknowledged.delete(name);
        else acknowledged.set(name, stored.revision);
      }
    } catch {
      // The disk failed: the story stops here.
    }
    return acknowledged;
  }

  function revisions(store: Store): Map<string, number> {
    return new Map(store.list(MAPS).map((stored) => [stored.name, stored.revision]));
  }

  it("keep the directory small and the newest past alive", async () => {
    const disk = new FakeDisk();
    const store = await open(disk, small);
    const acknowledged = await busy(store, 200);
    await store.close();
    const files = (await disk.list()).sort();
    expect(files.filter((name) => name.startsWith("snapshot-"))).toHaveLength(2);
    expect(files.length).toBeLessThan(8);
    const again = await open(disk.afterKill(), small);
    expect(revisions(again)).toEqual(new Map([...acknowledged].sort()));
    // A watcher that was nearly up to date goes on; one from the beginning has to list.
    expect(told(again, store.revision - 5)).toHaveLength(5);
    expect(() => again.watch(MAPS, 1, () => {})).toThrow(Gone);
  });

  it("lose nothing, whichever step the server dies at, with or without the power", async () => {
    const whole = new FakeDisk();
    await busy(await open(whole, small), 60);
    expect((await whole.list()).some((name) => name.startsWith("snapshot-"))).toBe(true);
    for (let step = 3; step <= whole.operations; step++) {
      const disk = new FakeDisk();
      disk.failFrom = step;
      const opened = await open(disk, small).catch(() => undefined);
      const acknowledged = opened === undefined ? new Map() : await busy(opened, 60);
      const random = sequence(step);
      for (const after of [disk.afterKill(), disk.afterPowerLoss(random), disk.afterPowerLoss(random)]) {
        const found = revisions(await open(after, small));
        // The write that failed may be there or not: nobody was told either way.
        for (const [name, revision] of acknowledged)
          expect(found.get(name) ?? revision).toBeGreaterThanOrEqual(revision);
        const missing = [...acknowledged.keys()].filter((name) => !found.has(name));
        const extra = [...found.keys()].filter((name) => !acknowledged.has(name));
        expect(missing.length + extra.length).toBeLessThanOrEqual(1);
      }
    }
  });

  it("that are damaged are an error", async () => {
    const disk = new FakeDisk();
    await busy(await open(disk, small), 200);
    const [base] = (await disk.list()).filter((name) => name.startsWith("snapshot-")).sort();
    const bad = disk.afterKill();
    bad.damage(base!, 100);
    await expect(open(bad)).rejects.toThrow(coded("STORE_CORRUPT", new RegExp(`${base} is damaged at byte 0`)));
    const short = disk.afterKill();
    await short.truncate(base!, 0);
    await expect(open(short)).rejects.toThrow(coded("STORE_CORRUPT", /cut short/));
  });
});

describe("a disk that refuses a write", () => {
  it("makes the store read-only at the last acknowledged state, and the next start has it all", async () => {
    const disk = new FakeDisk();
    const store = await open(disk);
    const kept = await create(store, "kept");
    const events: WatchEvent[] = [];
    store.watch(MAPS, kept, (event) => events.push(event));
    disk.failure = "ENOSPC";
    disk.failFrom = 0;
    const { revision } = store.put(MAPS, map("lost"), "absent");
    store.put(MAPS, map("kept", "lost too"), kept);
    const refused = coded(
      "STORE_WRITE_FAILED",
      /^writing to the data directory fake failed \(ENOSPC\); the store is now read-only$/,
    );
    await expect(store.durable(revision)).rejects.toThrow(refused);
    expect(() => store.put(MAPS, map("more"), "absent")).toThrow(refused);
    expect(() => store.remove(MAPS, "n", "kept", kept)).toThrow(refused);
    expect(store.list(MAPS).map((stored) => stored.revision)).toEqual([kept]);
    expect(store.revision).toBe(kept);
    expect(events).toEqual([]);
    await store.close();
    expect(names(await open(disk.afterPowerLoss(() => 0)))).toEqual(["kept"]);
  });

  it("at the start is an error in the owner's words", async () => {
    for (const [code, coded] of [
      ["ENOSPC", "STORE_DISK_FULL"],
      ["EROFS", "STORE_NO_PERMISSION"],
      ["EIO", "STORE_UNUSABLE"],
    ] as const) {
      const disk = new FakeDisk();
      disk.failure = code;
      disk.failFrom = 0;
      await expect(open(disk)).rejects.toMatchObject({ code: coded });
    }
  });
});

/** Numbers below one, the same for the same seed. */
function sequence(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
