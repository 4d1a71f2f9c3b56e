import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import type { FlowBatch, FlowCounts, FlowKey, FlowRow } from "../../api/protocol/flow.ts";
import { flowBatch, flowKey, flowRow, NOTHING, outside, policyHit, randomFrom, workload } from "../flow.fixture.ts";
import { parseQuery } from "../query/parse-query.ts";
import { COUNTS } from "./counts.ts";
import { keyText } from "./flow-identity.ts";
import { FlowStore, type FlowStoreOptions } from "./flow-store.ts";
import type { FlowEvent } from "./flow-watch.ts";

const SEED = Number(process.env["FLOW_SEED"] ?? 1);
const START = Date.parse("2026-01-31T12:00:00Z");
const BUCKET = 15_000;
const HOUR = 3_600_000;

class Time {
  at = START;
  now = () => this.at;
}

function storeAt(time = new Time(), options: FlowStoreOptions = {}): FlowStore {
  return new FlowStore({ clock: time, ...options });
}

/** Sends batches as agents do: the next interval, of the last ten seconds. */
function sender(store: FlowStore, time: Time) {
  let interval = 0;
  return (rows: readonly FlowRow[], some: Partial<FlowBatch> = {}) =>
    store.add(flowBatch(rows, { interval: ++interval, since: time.at - 10_000, until: time.at, ...some }));
}

const sums = ({ packets, bytes, replyPackets, replyBytes, started, ended, live }: FlowCounts): FlowCounts => ({
  packets,
  bytes,
  replyPackets,
  replyBytes,
  started,
  ended,
  live,
});

describe("sums", () => {
  it("adds rows of one key, and shows what is open as it was last", () => {
    const time = new Time();
    const store = storeAt(time);
    const add = sender(store, time);
    add([flowRow({}, { live: 2 }), flowRow({ port: 80 })]);
    time.at += BUCKET;
    add([flowRow({}, { live: 1, bytes: 20, packets: 1, started: 0 })]);
    const { flows, totals } = store.list({});
    expect(flows.map(({ key }) => key.port)).toEqual([5432, 80]);
    expect(flows[0]).toMatchObject({ bytes: 200, packets: 4, started: 3, live: 1, lastSeen: time.at });
    expect(totals).toEqual({ ...NOTHING, flows: 2, bytes: 380, packets: 7, started: 6, live: 1 });
  });

  it("counts a batch once", () => {
    const time = new Time();
    const store = storeAt(time);
    const batch = flowBatch([flowRow()], { interval: 7, until: time.at });
    expect(store.add(batch)).toBe("added");
    expect(store.add(batch)).toBe("repeated");
    expect(store.add({ ...batch, interval: 6 })).toBe("repeated");
    expect(store.add({ ...batch, boot: "boot-2" })).toBe("added");
    expect(store.add(batch)).toBe("repeated");
    expect(store.add({ ...batch, node: "node-2" })).toBe("added");
    expect(store.list({}).totals.bytes).toBe(3 * 180);
  });

  it("refuses a number that is none, and adds nothing of the batch", () => {
    const store = storeAt();
    for (const bytes of [Number.NaN, -1, 0.5, Number.POSITIVE_INFINITY, 2 ** 60])
      expect(() => store.add(flowBatch([flowRow(), flowRow({}, { bytes })]))).toThrow(/bytes is no whole number/);
    expect(store.list({}).totals.flows).toBe(0);
    expect(store.add(flowBatch([flowRow()], { until: START }))).toBe("added");
  });

  it.each([1, 2, 3, 4, 5, 6])(
    "are those of a plain model: random batches, repeats, late ones, any time (%i)",
    async (run) => {
      const random = randomFrom(SEED * 100 + run);
      const time = new Time();
      const store = storeAt(time, { historyMs: 20 * BUCKET });
      const model: { start: number; at: number; row: FlowRow }[] = [];
      const sent: FlowBatch[] = [];
      const intervals = new Map<string, number>();
      for (let step = 0; step < 120; step++) {
        time.at += Math.floor(random() * 9_000);
        const node = `node-${Math.floor(random() * 3)}`;
        const boot = `boot-${Math.floor(step / 50)}`;
        const interval = (intervals.get(node + boot) ?? 0) + 1;
        intervals.set(node + boot, interval);
        // A tenth comes late, as after a restart of the store.
        const until = time.at - (random() < 0.1 ? Math.floor(random() * 10 * BUCKET) : 0);
        const batch = flowBatch(randomRows(random, node), { node, boot, interval, until });
        expect(store.add(batch)).toBe("added");
        sent.push(batch);
        const start = Math.floor((until - 1) / BUCKET) * BUCKET;
        for (const row of batch.rows) model.push({ start, at: until, row });
        if (random() < 0.3) expect(store.add(sent[Math.floor(random() * sent.length)] as FlowBatch)).toBe("repeated");
        if (step % 5 === 0) await compare(store, model, time, random);
      }
    },
  );
});

function randomRows(random: () => number, node: string): FlowRow[] {
  const number = (most: number) => Math.floor(random() * most);
  const rows = new Map<string, FlowRow>();
  for (let count = number(30); count > 0; count--) {
    const key = flowKey({ from: workload(`ns-${number(3)}`, `app-${number(4)}`), port: 8000 + number(3), node });
    rows.set(
      keyText(key),
      flowRow(key, {
        packets: number(10),
        bytes: number(2) ? number(300) : number(2 ** 40),
        replyPackets: number(70_000),
        replyBytes: number(2 ** 33),
        started: number(3),
        ended: number(3),
        live: number(4),
      }),
    );
  }
  return [...rows.values()];
}

async function compare(
  store: FlowStore,
  model: { start: number; at: number; row: FlowRow }[],
  time: Time,
  random: () => number,
): Promise<void> {
  const kept = model.filter(({ start }) => start + BUCKET > time.at - 20 * BUCKET);
  const since = random() < 0.3 ? undefined : time.at - Math.floor(random() * 22 * BUCKET);
  const until = random() < 0.6 ? undefined : time.at - Math.floor(random() * 15 * BUCKET);
  const within = kept.filter(
    ({ start }) =>
      start + BUCKET > (since ?? 0) &&
      start < (until ?? Number.POSITIVE_INFINITY) &&
      (since ?? 0) < (until ?? Number.POSITIVE_INFINITY),
  );
  const expected = new Map<string, FlowCounts & { at: number }>();
  for (const { at, row } of within) {
    const text = keyText(row.key);
    const entry = expected.get(text) ?? { ...NOTHING, at: 0 };
    for (const name of COUNTS) if (name !== "live") entry[name] += row[name];
    if (at >= entry.at) entry.live = row.live;
    entry.at = Math.max(entry.at, at);
    expected.set(text, entry);
  }
  const { flows, totals } = store.list({ since, until });
  expect(new Map(flows.map((flow) => [keyText(flow.key), { ...sums(flow), at: flow.lastSeen }]))).toEqual(expected);
  expect(totals.flows).toBe(expected.size);
  for (const name of COUNTS)
    expect(totals[name], name).toBe([...expected.values()].reduce((sum, entry) => sum + entry[name], 0));
  const { points } = await store.timeline({ since, until, points: 1 + Math.floor(random() * 30) });
  const bytes = points.reduce((sum, point) => sum + point.allowed.bytes + point.denied.bytes, 0);
  expect(bytes).toBe(totals.bytes + totals.replyBytes);
}

describe("memory", () => {
  it("needs at most 40 bytes for a row, keys included", async () => {
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as () => void;
    const used = async () => {
      // Buffers are given back after a collection, in the background.
      for (let round = 0; round < 5; round++) {
        gc();
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const FLOWS = Number(process.env["FLOW_KEYS"] ?? 1_000);
    const BUCKETS = 240;
    const time = new Time();
    const random = randomFrom(SEED);
    const rows = Array.from({ length: FLOWS }, (_, index) => typicalRow(index, random));
    const before = await used();
    const store = storeAt(time);
    for (let bucket = 1; bucket <= BUCKETS; bucket++) {
      time.at += BUCKET;
      store.add(flowBatch(rows, { interval: bucket, until: time.at }));
    }
    time.at += BUCKET;
    const bytes = (await used()) - before;
    const { totals } = store.list({ limit: 1 });
    expect(totals.flows).toBe(FLOWS);
    const perRow = bytes / (FLOWS * BUCKETS);
    console.log(`${perRow.toFixed(1)} bytes a row, by the estimate ${(store.memory / (FLOWS * BUCKETS)).toFixed(1)}`);
    expect(perRow).toBeLessThan(40);
    // The limit is only as good as the estimate.
    expect(store.memory).toBeGreaterThan(bytes * 0.7);
    expect(store.memory).toBeLessThan(bytes * 2);
  });

  it("is bounded under overload: ports go first, then addresses, then names; sums stay exact", () => {
    const LIMIT = 8 * 2 ** 20;
    const time = new Time();
    const store = storeAt(time, { memory: LIMIT });
    const add = sender(store, time);
    const seen = new Set<string>();
    let [bytes, most] = [0, 0];
    const sent = new Map<number, number>();
    for (let step = 0; step < 60; step++) {
      time.at += BUCKET;
      const rows = Array.from({ length: 400 }, (_, index) =>
        flowRow(
          {
            from: workload(`ns-${index % 7}`, `app-${step < 40 ? index % 20 : `${step}-${index}`}`),
            port: 1_000 + step * 400 + index,
          },
          { sourceAddresses: [`10.0.${step}.${index % 250}`], bytes: 100 + index },
        ),
      );
      add(rows);
      bytes += rows.reduce((sum, row) => sum + row.bytes, 0);
      sent.set(
        Math.floor((time.at - 1) / BUCKET) * BUCKET,
        rows.reduce((sum, row) => sum + row.bytes, 0),
      );
      most = Math.max(most, store.memory);
      const { totals, shed, historyFrom } = store.list({ limit: 1 });
      for (const [name, isShed] of Object.entries(shed)) if (isShed === true && !seen.has(name)) seen.add(name);
      const kept = [...sent].filter(([start]) => start >= historyFrom).reduce((sum, [, of]) => sum + of, 0);
      expect(totals.bytes).toBe(kept);
    }
    expect(bytes).toBeGreaterThan(0);
    expect([...seen]).toEqual(["ports", "addresses", "names"]);
    expect(most).toBeLessThan(LIMIT * 1.05);
    // What was not merged is told apart as before.
    expect(store.list({ query: parseQuery("port:1000") }).totals.flows).toBe(1);
    expect(store.list({ since: START, until: START + 2 * BUCKET }).shed).toMatchObject({ ports: false });
  });

  it("gives up the oldest when merging is not enough", () => {
    const time = new Time();
    const store = storeAt(time, { memory: 2 ** 20 });
    const add = sender(store, time);
    for (let step = 0; step < 300; step++) {
      time.at += 2_000;
      add(Array.from({ length: 500 }, (_, index) => flowRow({ from: workload(`ns-${index}`, "x") })));
    }
    expect(store.memory).toBeLessThan(1.6 * 2 ** 20);
    expect(store.list({ limit: 1 }).historyFrom).toBeGreaterThan(START);
  });

  it("forgets keys with their last row", () => {
    const time = new Time();
    const store = storeAt(time);
    const add = sender(store, time);
    add([flowRow({ port: 1 }), flowRow({ port: 2 })]);
    time.at += HOUR - BUCKET;
    add([flowRow({ port: 2 })]);
    time.at += 2 * BUCKET;
    expect(store.list({}).flows.map(({ key, bytes }) => [key.port, bytes])).toEqual([[2, 180]]);
    time.at += HOUR;
    expect(store.list({})).toMatchObject({ flows: [], historyFrom: time.at });
    expect(store.memory).toBe(0);
    add([flowRow({ port: 3 })]);
    expect(store.list({}).totals).toMatchObject({ flows: 1, bytes: 180 });
  });
});

function typicalRow(index: number, random: () => number): FlowRow {
  const number = (most: number) => Math.floor(random() * most);
  return flowRow(
    {
      from: workload(`namespace-${index % 40}`, `deployment-${index % 397}`),
      to: workload(`namespace-${(index * 7) % 40}`, `service-${(index * 13) % 511}`),
      port: 8_000 + (index % 50),
      policies: [policyHit({ direction: "Egress", action: "Allow", rule: index % 97 }), policyHit({ action: "Allow" })],
      verdict: "Allow",
      node: `node-${index % 100}`,
    },
    {
      packets: number(2_000),
      bytes: number(index % 100 === 0 ? 2 ** 36 : 2_000_000),
      replyPackets: number(2_000),
      replyBytes: number(2_000_000),
      started: number(50),
      ended: number(50),
      live: number(10),
      sourceAddresses: [`10.244.${index % 250}.${index % 199}`],
      destinationAddresses: [`10.245.${index % 250}.${index % 197}`],
    },
  );
}

describe("pages", () => {
  it("show what was there when the first was given, whatever comes in between", () => {
    const time = new Time();
    const store = storeAt(time);
    const add = sender(store, time);
    add(Array.from({ length: 25 }, (_, port) => flowRow({ port })));
    const first = store.list({ limit: 10 });
    expect(first).toMatchObject({ remaining: 15, totals: { flows: 25 } });
    const pages = [first];
    for (let page = first; page.continue; pages.push(page)) {
      time.at += 1_000;
      add([flowRow({ port: 3 }), flowRow({ port: 100 + pages.length })]);
      page = store.list({ limit: 10, continue: page.continue });
    }
    const ports = pages.flatMap(({ flows }) => flows.map(({ key }) => key.port));
    expect(ports.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 25 }, (_, port) => port));
    expect(pages.map(({ remaining }) => remaining)).toEqual([15, 5, 0]);
    // A page that was lost on the way is asked for again.
    expect(store.list({ limit: 10, continue: first.continue }).flows.map(({ id }) => id)).toEqual(
      pages[1]?.flows.map(({ id }) => id),
    );
  });

  it("expire, and are of one question and one reader", () => {
    const time = new Time();
    const store = storeAt(time);
    sender(store, time)([flowRow({ port: 1 }), flowRow({ port: 2 })]);
    const visible = (namespace: string) => namespace === "shop";
    const token = store.list({ limit: 1 }).continue;
    const mine = store.list({ limit: 1, visible }).continue;
    expect(store.list({ limit: 1, continue: mine, visible }).flows).toHaveLength(1);
    const expired = { code: "FLOW_CONTINUE_EXPIRED" };
    const refused = (asked: Parameters<FlowStore["list"]>[0]) =>
      expect(() => store.list({ limit: 1, ...asked })).toThrow(expect.objectContaining(expired));
    refused({ continue: token, visible });
    refused({ continue: mine });
    refused({ continue: mine, visible: () => false });
    refused({ continue: token, sort: "bytes" });
    refused({ continue: token, query: parseQuery("web") });
    refused({ continue: "x" });
    refused({ continue: `${"x".repeat(24)}.1` });
    time.at += 6 * 60_000;
    refused({ continue: token });
  });

  it("are in the order that was asked for", () => {
    const time = new Time();
    const store = storeAt(time);
    const add = sender(store, time);
    add([flowRow({ port: 1 }, { bytes: 9, packets: 1, started: 5 }), flowRow({ port: 2, from: workload("a", "z") })]);
    time.at += BUCKET;
    add([flowRow({ port: 3, to: workload("a", "a") }, { bytes: 1, packets: 7 })]);
    const ports = (sort: Parameters<FlowStore["list"]>[0]["sort"]) =>
      store.list({ sort }).flows.map(({ key }) => key.port);
    expect(ports(undefined)[0]).toBe(3);
    expect(ports("bytes")).toEqual([2, 1, 3]);
    expect(ports("packets")).toEqual([3, 2, 1]);
    expect(ports("connections")[0]).toBe(1);
    expect(ports("from")[0]).toBe(2);
    expect(ports("to")[0]).toBe(3);
  });
});

describe("a watch", () => {
  async function take(events: AsyncIterator<FlowEvent>, count: number): Promise<FlowEvent[]> {
    const taken: FlowEvent[] = [];
    while (taken.length < count) {
      const { value, done } = await events.next();
      if (done) break;
      taken.push(value);
    }
    return taken;
  }
  const brief = (events: FlowEvent[]) =>
    events.map((event) =>
      event.type === "BOOKMARK" ? "BOOKMARK" : `${event.type} ${event.flow.key.port} ${event.flow.bytes}`,
    );
  function watched(store: FlowStore, asked: Partial<Parameters<FlowStore["watch"]>[0]> = {}) {
    const stop = new AbortController();
    const events = store.watch({ signal: stop.signal, ...asked })[Symbol.asyncIterator]();
    return { events, stop };
  }

  it("begins with what is there, goes on with what changes, and resumes without a gap", async () => {
    const time = new Time();
    const store = storeAt(time);
    const add = sender(store, time);
    add([flowRow({ port: 1 }), flowRow({ port: 2 })]);
    const { events, stop } = watched(store);
    expect(brief(await take(events, 3))).toEqual(["ADDED 1 180", "ADDED 2 180", "BOOKMARK"]);
    const next = take(events, 3);
    add([flowRow({ port: 2 }), flowRow({ port: 3 })]);
    const changed = await next;
    expect(brief(changed)).toEqual(["MODIFIED 2 360", "ADDED 3 180", "BOOKMARK"]);
    stop.abort();
    expect((await events.next()).done).toBe(true);

    // From between the two events of one batch.
    const [second] = changed;
    const resumed = watched(store, { resourceVersion: second?.type === "MODIFIED" ? second.flow.resourceVersion : "" });
    add([flowRow({ port: 1 }), flowRow({ port: 3 })]);
    expect(brief(await take(resumed.events, 3))).toEqual(["MODIFIED 1 360", "ADDED 3 360", "BOOKMARK"]);
    resumed.stop.abort();
    const fromList = watched(store, { resourceVersion: store.list({}).resourceVersion, query: parseQuery("port:1") });
    const only = take(fromList.events, 1);
    add([flowRow({ port: 2 })]);
    add([flowRow({ port: 1 })]);
    expect(brief(await only)).toEqual(["MODIFIED 1 540"]);
    fromList.stop.abort();
  });

  it("is refused for a version that is older than the history, or of another process", () => {
    const time = new Time();
    const store = storeAt(time);
    const add = sender(store, time);
    add([flowRow()]);
    const { resourceVersion } = store.list({});
    add([flowRow()]);
    time.at += 2 * HOUR;
    add([flowRow()]);
    const expired = expect.objectContaining({ code: "FLOW_VERSION_EXPIRED" });
    for (const version of [resourceVersion, "1", "x", "-1", "9".repeat(16), "1e3"])
      expect(() => watched(store, { resourceVersion: version }), version).toThrow(expired);
    expect(() => watched(storeAt(time), { resourceVersion: store.list({}).resourceVersion })).toThrow(expired);
    expect(() => watched(store, { query: parseQuery("since:1h") })).toThrow(/a watch has no since/);
  });

  it("of a slow reader merges what it missed, keeps nothing for it, and holds no other", async () => {
    const time = new Time();
    const store = storeAt(time);
    const add = sender(store, time);
    add([flowRow({ port: 1 })]);
    const slow = watched(store);
    const quick = watched(store);
    await take(slow.events, 1);
    await take(quick.events, 2);
    for (let step = 0; step < 500; step++) {
      const event = take(quick.events, 2);
      add([flowRow({ port: 1 }), flowRow({ port: 2 })]);
      expect(await event).toHaveLength(2);
      await take(quick.events, 1);
    }
    expect(brief(await take(slow.events, 4))).toEqual([
      "BOOKMARK",
      `MODIFIED 1 ${501 * 180}`,
      `ADDED 2 ${500 * 180}`,
      "BOOKMARK",
    ]);
    slow.stop.abort();
    quick.stop.abort();
  });

  it("of a reader that fell behind the history ends with 410", async () => {
    const time = new Time();
    const store = storeAt(time);
    const add = sender(store, time);
    add([flowRow({ port: 1 }), flowRow({ port: 2 })]);
    const { events, stop } = watched(store);
    await take(events, 1);
    time.at += 2 * HOUR;
    add([flowRow({ port: 3 })]);
    await expect(take(events, 3)).rejects.toMatchObject({ code: "FLOW_VERSION_EXPIRED" });
    stop.abort();
  });

  it("is one of a limited number", async () => {
    const store = storeAt(new Time(), { watches: 1 });
    const { events, stop } = watched(store);
    const first = events.next();
    expect(() => watched(store)).toThrow(/1 watches are open/);
    stop.abort();
    await first;
    expect(() => watched(store)).not.toThrow();
  });
});

it("names nodes that are silent, late, or have another clock", async () => {
  const time = new Time();
  const store = storeAt(time);
  const send = (node: string, interval: number, until: number) => store.add(flowBatch([], { node, interval, until }));
  send("silent", 1, time.at);
  send("late", 1, time.at - 5 * 60_000);
  for (let interval = 1; interval <= 4; interval++) {
    time.at += BUCKET;
    send("well", interval, time.at);
    send("behind", interval, time.at - 10 * 60_000);
    send("ahead", interval, time.at + 60_000);
  }
  time.at += 2 * BUCKET;
  expect(store.list({}).nodes).toEqual({ silent: ["late", "silent"], late: ["late"], skewed: ["ahead", "behind"] });
  expect(store.list({}).flows).toEqual([]);
  // A reader of a namespace is told the names of nodes that its own flows have.
  const visible = (namespace: string) => namespace === "shop";
  store.add(
    flowBatch([flowRow({ node: "ahead", reporter: "Source" })], {
      node: "ahead",
      interval: 5,
      until: time.at + 60_000,
    }),
  );
  expect(store.list({ visible }).nodes).toEqual({ silent: [], late: [], skewed: ["ahead"], unnamed: 3 });
  expect((await store.timeline({ visible, points: 1, query: parseQuery("port:1") })).nodes).toMatchObject({
    skewed: [],
    unnamed: 4,
  });
  time.at += 2 * HOUR;
  expect(store.list({}).nodes.silent).toEqual([]);
});

describe("questions", () => {
  function filled(time = new Time()) {
    const store = storeAt(time);
    const add = sender(store, time);
    add([
      flowRow({}, { bytes: 1_000 }),
      flowRow(
        {
          verdict: "Allow",
          port: 80,
          to: workload("shop", "cart"),
          policies: [policyHit({ action: "Allow", name: "open", namespace: "shop", rule: 0 })],
          reason: undefined,
        } as Partial<FlowKey>,
        { bytes: 5_000 },
      ),
      flowRow({ from: outside, port: 443 }, { bytes: 10 }),
    ]);
    return store;
  }

  it("hints of a field, those of most flows first", () => {
    const store = filled();
    expect(store.hints({ field: "from" })).toEqual([
      { value: "shop/web", flows: 2 },
      { value: "public", flows: 1 },
    ]);
    expect(store.hints({ field: "to", prefix: "CA" }).map(({ value }) => value)).toEqual(["shop/cart"]);
    expect(store.hints({ field: "label", prefix: "app=d" }).map(({ value }) => value)).toEqual(["app=db"]);
    expect(store.hints({ field: "rule", query: parseQuery("verdict:allow") })).toEqual([
      { value: "shop/open#ingress[0]", flows: 1 },
    ]);
    expect(store.hints({ field: "port", limit: 1 })).toHaveLength(1);
    expect(() => store.hints({ field: "bytes" })).toThrow(/cannot be listed by "bytes"/);
  });

  it("the most of a field", () => {
    expect(filled().top({ by: "verdict" }).values).toEqual([
      {
        value: "allow",
        flows: 1,
        connections: 3,
        packets: 3,
        bytes: 5_000,
        denied: { flows: 0, connections: 0, packets: 0, bytes: 0 },
      },
      {
        value: "deny",
        flows: 2,
        connections: 6,
        packets: 6,
        bytes: 1_010,
        denied: { flows: 2, connections: 6, packets: 6, bytes: 1_010 },
      },
    ]);
    expect(filled().top({ by: "port", measure: "flows", limit: 2 }).values).toHaveLength(2);
  });

  it("what rules decided, also those that nothing hits", () => {
    const never = {
      kind: "NetworkPolicy",
      tier: "default",
      namespace: "pay",
      name: "lock",
      direction: "Ingress",
      rule: 0,
    } as const;
    const { rules } = filled().statistics({ by: "rule", known: [never] });
    expect(
      rules.map(({ name, rule, allowed, denied, lastHit }) => [name, rule, allowed.bytes, denied.bytes, lastHit]),
    ).toEqual([
      ["lock", 0, 0, 0, undefined],
      ["lock", 2, 0, 1_010, START],
      ["open", 0, 5_000, 0, START],
    ]);
    expect(
      filled()
        .statistics({ by: "policy", known: [never] })
        .rules.map(({ name, rule }) => [name, rule]),
    ).toEqual([
      ["lock", undefined],
      ["open", undefined],
    ]);
  });

  it("a flow by its id, which is the same in every process", () => {
    const [flow] = filled().list({ query: parseQuery("port:80") }).flows;
    expect(filled().find({ id: flow?.id as string })).toEqual({ ...flow, resourceVersion: expect.any(String) });
    expect(filled().find({ id: "x" })).toBeUndefined();
  });
});
