import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FlowBatch } from "../../src/api/protocol/flow.ts";
import {
  BATCH_LIMIT,
  BATCHES_PATH,
  PACE_PATH,
  readBatch,
  WireError,
  writeBatch,
} from "../../src/api/protocol/flow-wire.ts";
import { flowBatch, flowRow, workload } from "../../src/flows/flow.fixture.ts";
import { agentPort } from "../../src/flows/ingest/agent-port.ts";
import { type FlowPace, flowPace } from "../../src/flows/ingest/flow-pace.ts";
import { FlowStore } from "../../src/flows/store/flow-store.ts";
import { silentLog } from "../../src/kit/log.ts";
import { createAuthority, issue, type KeyPair } from "../../src/kit/x509.ts";

/** What vendor-flow-logs takes from agents, when who sends is no agent, or one that is not well. Another agent is heard all the time. */

const NAME = "vendor-flow-logs.vendor-system.svc";
const DAY = 86_400_000;
const before = new Date(Date.now() - DAY);
const ours = createAuthority({ commonName: "ours" }, before, 10);
const theirs = createAuthority({ commonName: "ours" }, before, 10);
const server = issue(ours, {
  subject: { commonName: NAME },
  usage: "server",
  names: [NAME],
  notBefore: before,
  days: 2,
});
const agent = certificate();

function certificate({ authority = ours, commonName = "vendor-node", notBefore = before, days = 2 } = {}): KeyPair {
  return issue(authority, { subject: { commonName }, usage: "client", notBefore, days });
}

let store: FlowStore;
let pace: FlowPace;
let port: number;
let ends: (() => Promise<void> | void)[];
/** An agent that is well. */
let honest: ClientHttp2Session;
let interval: number;

beforeEach(async () => {
  store = new FlowStore();
  pace = flowPace();
  ends = [];
  interval = 0;
  const listening = agentPort({
    ...{ tls: { ...server, ca: ours.certificate }, agents: "vendor-node", pace, log: silentLog, instance: "one" },
    lastOf: (node, boot) => store.lastOf(node, boot),
    keep: async (batch) => void store.add(batch),
  });
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  port = (listening.address() as AddressInfo).port;
  ends.push(async () => {
    const closed = new Promise<void>((resolve) => listening.close(() => resolve()));
    listening.closeAllConnections();
    await closed;
  });
  honest = open();
});
afterEach(async () => {
  for (const end of ends.reverse()) await end();
});

function open(pair: KeyPair | null = agent): ClientHttp2Session {
  const keys = pair && { cert: pair.certificate, key: pair.key };
  const session = connect(`https://127.0.0.1:${port}`, { ca: ours.certificate, servername: NAME, ...keys });
  session.on("error", () => {});
  ends.push(() => session.destroy());
  return session;
}

/** Resolves with what was answered; status 0: nothing was. */
function answerOf(stream: ClientHttp2Stream): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    let status = 0;
    let text = "";
    stream.on("response", (headers) => {
      status = Number(headers[":status"]);
    });
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    stream.on("error", () => {});
    stream.on("close", () => resolve({ status, text }));
  });
}

const begin = (session: ClientHttp2Session, path = BATCHES_PATH) =>
  session.request({ ":method": "POST", ":path": path }).on("error", () => {});

function post(session: ClientHttp2Session, body: string | Buffer) {
  const stream = begin(session);
  const answer = answerOf(stream);
  stream.end(body);
  return answer;
}

const textOf = (batch: Partial<FlowBatch> = {}, rows = [flowRow()]) =>
  writeBatch(flowBatch(rows, { node: "other", until: Date.now(), interval: 1, ...batch }), Date.now());

/** The agent that is well goes on, and what it sends is kept once. */
async function expectHonest(): Promise<void> {
  interval++;
  const batch = flowBatch([flowRow({ node: "honest" })], { node: "honest", interval, until: Date.now() });
  expect(await post(honest, writeBatch(batch, Date.now()))).toEqual({ status: 200, text: `{"interval":${interval}}` });
  expect(store.top({ by: "node" }).values.find(({ value }) => value === "honest")?.bytes).toBe(interval * 180);
}

describe("who is no agent", () => {
  it.each<[string, () => KeyPair | undefined]>([
    ["no certificate", () => undefined],
    ["a certificate of another authority of the same name", () => certificate({ authority: theirs })],
    ["an expired certificate", () => certificate({ notBefore: new Date(Date.now() - 5 * DAY), days: 1 })],
    ["a certificate that is not valid yet", () => certificate({ notBefore: new Date(Date.now() + DAY) })],
  ])("with %s does not get past the handshake", async (_name, pair) => {
    const session = open(pair() ?? null);
    expect(await post(session, textOf())).toEqual({ status: 0, text: "" });
    expect(store.list({}).totals.flows).toBe(0);
    await expectHonest();
  });

  it("with the certificate of another program is refused in one sentence, at every path", async () => {
    const session = open(certificate({ commonName: "vendor-flow-ui" }));
    const sentence = "the certificate is vendor-flow-ui's, and flows are sent by vendor-node";
    expect(await post(session, textOf())).toEqual({ status: 403, text: sentence });
    for (const path of [PACE_PATH, "/", "/v1/batches/../pace"])
      expect(await answerOf(session.request({ ":path": path }))).toEqual({ status: 403, text: sentence });
    await expectHonest();
  });
});

describe("a body", () => {
  const whole = textOf();
  it.each<[string, string | Buffer]>([
    ["nothing", ""],
    ["no object", "null"],
    ["a list", "[]"],
    ["no JSON", "flows"],
    ["bytes", Buffer.from(Array.from({ length: 4_096 }, (_, index) => (index * 167) & 255))],
    ["half a batch", whole.slice(0, whole.length >> 1)],
    ["a compressed batch", gzipSync(whole)],
    ["half a compressed batch", gzipSync(whole).subarray(0, 40)],
    ["another layout", JSON.stringify({ ...JSON.parse(whole), layout: 2 })],
    ["lists in lists", `${"[".repeat(400_000)}${"]".repeat(400_000)}`],
    ["lists in lists as a label", whole.replace(String.raw`\"db\"`, `${"[".repeat(9_999)}${"]".repeat(9_999)}`)],
    ["millions of lists", `{"layout":1,"rows":[${"[],".repeat(1_000_001)}[]]}`],
    ["a million rows", JSON.stringify({ ...JSON.parse(whole), rows: Array(1_000_000).fill(0) })],
  ])("of %s is refused in one sentence", async (_name, body) => {
    const { status, text } = await post(open(), body);
    expect(status).toBe(400);
    expect(text).toMatch(/^[\w ",{}[\].'-]{5,200}$/);
    expect(store.list({}).totals.flows).toBe(0);
    await expectHonest();
  });

  it("that is too long is refused before all of it is there", async () => {
    const stream = begin(open());
    const answer = new Promise<number>((resolve) =>
      stream.on("response", (headers) => resolve(Number(headers[":status"]))),
    );
    const piece = Buffer.alloc(1024 * 1024, "[");
    for (let sent = 0; sent <= BATCH_LIMIT; sent += piece.length)
      await new Promise<void>((resolve) => stream.write(piece, () => resolve()));
    expect(await answer).toBe(413);
    await expectHonest();
  });

  it("with a wrong value in any place is refused, or is harmless: nothing else is thrown", () => {
    // Deeper than a call stack: written by hand, since JSON.stringify has one.
    const deep = "deeper";
    const textWith = (value: unknown) =>
      JSON.stringify(value)?.replace(`"${deep}"`, `${"[".repeat(50_000)}${"]".repeat(50_000)}`);
    const written = (value: Record<string, unknown>) =>
      textWith(
        Object.fromEntries(
          Object.entries(value).map(([name, part]) => [
            name,
            PACKED.includes(name) && Array.isArray(part) ? part.map(textWith) : part,
          ]),
        ),
      );
    const wrong = [
      ...[null, true, -1, 1.5, 2 ** 53, 1e308, -0, "", "x".repeat(600), "\u0000\u202e", "__proto__", "9"],
      ...[
        [],
        [null],
        {},
        { toString: 1, valueOf: 1 },
        { length: 3 },
        JSON.parse('{"__proto__":{"type":"Node"}}'),
        deep,
      ],
    ];
    const pending = { verdict: "Allow" as const, policies: [{ ...flowRow().key.policies[0]!, staged: true }] };
    const rows = [flowRow({ pending }), flowRow({ port: 80 })];
    const wire = JSON.parse(textOf({}, rows)) as Record<string, unknown>;
    const good = Object.fromEntries(Object.entries(wire).map(([name, part]) => [name, unpacked(name, part)]));
    let [refused, read] = [0, 0];
    for (const path of pathsOf(good)) {
      for (const value of [...wrong, undefined]) {
        const text = written(changed(good, path, value));
        try {
          const batch = readBatch(text);
          store.add({ ...batch, interval: ++read });
        } catch (error) {
          if (!(error instanceof WireError))
            throw new Error(`${path.join(".")}: ${text.slice(0, 300)}`, { cause: error });
          refused++;
        }
      }
    }
    expect(refused).toBeGreaterThan(1_000);
    expect(read).toBeGreaterThan(10);
    const { flows, totals } = store.list({});
    expect(flows.length).toBe(totals.flows);
    for (const count of Object.values(totals)) expect(Number.isSafeInteger(count)).toBe(true);
  });

  it("with keys that reach for prototypes changes none, and shows them as the labels they are", async () => {
    const labels = JSON.parse('{"__proto__":"polluted","constructor":"x","toString":"y"}');
    const row = flowRow({ to: workload("pay", "db", labels), node: "other" });
    const text = textOf({}, [row]).replace(
      String.raw`\"labels\":{`,
      String.raw`\"labels\":{\"__proto__\":\"polluted\",`,
    );
    expect((await post(open(), text)).status).toBe(200);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
    const [flow] = store.list({}).flows;
    expect(Object.entries(flow!.key.to.labels!)).toContainEqual(["__proto__", "polluted"]);
    expect(store.hints({ field: "label", prefix: "__proto__" })).toEqual([{ value: "__proto__=polluted", flows: 1 }]);
  });

  it.each([["-1"], ["1e999"], ["NaN"], ["1e300"], ["9007199254740993"], ["0.5"], ['"5"']])(
    "with the count %s is refused",
    async (count) => {
      const { status } = await post(open(), textOf({}, [flowRow({}, { bytes: 123_456 })]).replace("123456", count));
      expect(status).toBe(400);
      expect(store.list({}).totals.flows).toBe(0);
    },
  );
});

const PACKED = ["ends", "services", "ways", "pendings"];

/** Parts of a batch are texts in its text. */
function unpacked(name: string, part: unknown): unknown {
  return PACKED.includes(name) ? (part as string[]).map((text) => JSON.parse(text)) : part;
}

function pathsOf(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== "object" || value === null) return [path];
  const names = Array.isArray(value) ? value.map((_, index) => index) : Object.keys(value);
  const below = names.flatMap((name) => pathsOf((value as Record<string | number, unknown>)[name], [...path, name]));
  return path.length === 0 ? below : [path, ...below];
}

function changed(
  of: Record<string, unknown>,
  path: readonly (string | number)[],
  value: unknown,
): Record<string, unknown> {
  const copy = structuredClone(of);
  let at: Record<string | number, unknown> = copy;
  for (const name of path.slice(0, -1)) at = at[name] as typeof at;
  at[path.at(-1)!] = value;
  return copy;
}

describe("an agent that is not well keeps no other waiting", () => {
  it("with bodies that begin and do not go on", async () => {
    const begun = [1, 2, 3].flatMap(() => {
      const session = open();
      return Array.from({ length: 20 }, () => begin(session));
    });
    for (const stream of begun) stream.write('{"layout":1');
    await expectHonest();
    await expectHonest();
  });

  it("with streams that are left while they wait", async () => {
    for (let round = 0; round < 3; round++) {
      const session = open();
      const begun = Array.from({ length: 30 }, () => begin(session));
      for (const stream of begun) stream.write("{");
      await expectHonest();
      session.destroy();
    }
    await expectHonest();
  });

  it("with ten thousand streams that are opened and left", async () => {
    for (let connection = 0; connection < 10; connection++) {
      const session = open();
      for (let count = 0; count < 1_000; count++) {
        const stream = session.request({
          ":method": count % 2 ? "POST" : "GET",
          ":path": count % 3 ? BATCHES_PATH : PACE_PATH,
        });
        stream.on("error", () => {});
        stream.close(count % 2 ? 8 : 0);
      }
      await expectHonest();
      session.destroy();
    }
  });

  it("with more bytes than are held, of which its own are given up", async () => {
    const piece = Buffer.alloc(256 * 1024, " ");
    const session = open();
    // Five bodies of 28 MB: each is allowed, all of them are not.
    const streams = Array.from({ length: 5 }, () => begin(session));
    const statuses = streams.map(
      (stream) =>
        new Promise<number>((resolve) => stream.on("response", (headers) => resolve(Number(headers[":status"])))),
    );
    const sending = streams.map(async (stream) => {
      for (let count = 0; count < 112; count++)
        await new Promise<void>((resolve) => stream.write(piece, () => resolve()));
    });
    expect(await Promise.race(statuses)).toBe(503);
    await expectHonest();
    await Promise.all(sending);
    await expectHonest();
  });

  it("when it never reads the pace, while the pace changes without end", async () => {
    const deaf = open().request({ ":path": `${PACE_PATH}?node=deaf&boot=b` });
    deaf.on("error", () => {}).pause();
    await new Promise((resolve) => deaf.once("response", resolve));
    let closed = false;
    deaf.once("close", () => {
      closed = true;
    });
    for (let round = 0; round < 200 && !closed; round++) {
      for (let count = 0; count < 100; count++) pace.watch()();
      await new Promise((resolve) => setImmediate(resolve));
    }
    // Read to its end: there is one, since the server has let it go.
    deaf.resume();
    await expect.poll(() => closed).toBe(true);
    await expectHonest();
  });
});

describe("what an agent says of itself", () => {
  it("is the word of one node: a connection does not speak for others", async () => {
    const session = open();
    const ask = (node: string) => answerOf(session.request({ ":path": `${PACE_PATH}?node=${node}&boot=b` }));
    expect((await post(session, textOf())).status).toBe(200);
    expect(await post(session, textOf({ node: "another" }))).toEqual({
      ...{ status: 403, text: "this connection speaks for other, not for another" },
    });
    expect((await ask("another")).status).toBe(403);
    expect((await ask("NO%20NODE%1b")).status).toBe(400);
    for (const node of ["", "A", "a b", "../x", "x".repeat(300), "\u001b[2J"])
      expect((await post(open(), textOf({ node }))).status).toBe(400);
    expect(store.lastOf("another", "boot-1")).toBeUndefined();
  });

  it("names nodes that do not exist, and forgets none that does", async () => {
    await expectHonest();
    for (let count = 0; count < 50; count++)
      expect((await post(open(), textOf({ node: `no-${count}` }))).status).toBe(200);
    expect(store.lastOf("honest", "boot-1")).toBe(interval);
    await expectHonest();
  });

  it("counts once, whatever is sent again, of this boot and of one before", async () => {
    const session = open();
    const send = async (some: Partial<FlowBatch>) => (await post(session, textOf(some))).status;
    expect([await send({ interval: 5 }), await send({ interval: 5 }), await send({ interval: 4 })]).toEqual([
      200, 200, 200,
    ]);
    expect([await send({ boot: "b2", interval: 1 }), await send({ interval: 5 }), await send({ interval: 3 })]).toEqual(
      [200, 200, 200],
    );
    expect(store.list({}).totals).toMatchObject({ flows: 1, bytes: 2 * 180 });
  });

  it("is of a time far ahead: it is kept, in the present, and the clock is reported", async () => {
    const year = 365 * DAY;
    const batch = { interval: Math.floor((Date.now() + year) / 1_000), until: Date.now() + year };
    expect((await post(open(), textOf(batch))).status).toBe(200);
    const { flows, nodes } = store.list({});
    expect(flows[0]!.lastSeen).toBeLessThanOrEqual(Date.now());
    expect(nodes.skewed).toEqual(["other"]);
    await expectHonest();
  });
});
