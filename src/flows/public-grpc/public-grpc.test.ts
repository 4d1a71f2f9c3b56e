import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { FlowBatch } from "../../api/protocol/flow.ts";
import type { Clock } from "../../kit/clock.ts";
import { frame } from "../../kit/grpc/grpc-frames.ts";
import { silentLog } from "../../kit/log.ts";
import { createAuthority, issue, type KeyPair } from "../../kit/x509.ts";
import { flowBatch, flowRow, outside, policyHit, randomFrom, workload } from "../flow.fixture.ts";
import { agentPort } from "../ingest/agent-port.ts";
import { flowPace } from "../ingest/flow-pace.ts";
import { FlowStore } from "../store/flow-store.ts";
import { flowServices } from "./flow-services.ts";
import { type Message, publicClient, write } from "./public-client.fixture.ts";

const START = Date.UTC(2026, 0, 31, 12);

/** Moved by the tests; what waits is called when its time has come. */
class MovedClock implements Clock {
  #now = START;
  #waiting = new Set<{ at: number; fn: () => void }>();
  now = () => this.#now;
  setTimeout(fn: () => void, ms: number) {
    const entry = { at: this.#now + ms, fn };
    this.#waiting.add(entry);
    return () => void this.#waiting.delete(entry);
  }
  forward(ms: number) {
    this.#now += ms;
    for (const entry of [...this.#waiting]) if (entry.at <= this.#now && this.#waiting.delete(entry)) entry.fn();
  }
}

const AUTHORITY = createAuthority({ commonName: "ours" }, new Date(Date.now() - 60_000), 1);
const certificate = (commonName: string, usage: "server" | "client" = "client"): KeyPair =>
  issue(AUTHORITY, {
    ...{ subject: { commonName }, usage, names: usage === "server" ? ["vendor-flow-logs.vendor-system.svc"] : [] },
    ...{ notBefore: new Date(Date.now() - 60_000), days: 1 },
  });
const READER = certificate("vendor-flow-ui");
const AGENT = certificate("vendor-node");
const STRANGER = certificate("vendor-api");
const EXACT = 0;
const FUZZY = 1;

describe("the public flow protocol", () => {
  let server: ReturnType<typeof agentPort>;
  let port: number;
  let clock: MovedClock;
  let store: FlowStore;
  const clients = new Map<KeyPair, ReturnType<typeof publicClient>>();

  beforeAll(async () => {
    const keep = async (batch: FlowBatch) => void store.add(batch);
    server = agentPort({
      ...{ tls: { ...certificate("vendor-flow-logs", "server"), ca: AUTHORITY.certificate }, agents: "vendor-node" },
      ...{ keep, lastOf: () => undefined, instance: "test", pace: flowPace(), log: silentLog },
      others: flowServices({
        source: {
          sums: (range) => store.sums(range),
          get buckets() {
            return store.buckets;
          },
        },
        clock: { now: () => clock.now(), setTimeout: (fn, ms) => clock.setTimeout(fn, ms) },
        keep,
      }),
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => {
    for (const client of clients.values()) client.close();
    server.close();
    server.closeAllConnections();
  });
  beforeEach(() => {
    clock = new MovedClock();
    store = new FlowStore({ clock });
  });

  const connect = (pair: KeyPair) => {
    const made = publicClient(port, pair, AUTHORITY.certificate);
    clients.get(pair)?.close();
    clients.set(pair, made);
    return made;
  };
  const client = (pair = READER) => clients.get(pair) ?? connect(pair);
  let interval = 0;
  const add = (rows: ReturnType<typeof flowRow>[], node = "node-1") =>
    store.add(flowBatch(rows, { node, interval: ++interval, since: clock.now() - 5_000, until: clock.now() }));

  /** A request of shop/web to pay/api on another node, allowed at both ends, and what pay/db denied. */
  const addTypical = () => {
    const allowed = { verdict: "Allow", to: workload("pay", "api"), port: 8080, reason: undefined } as const;
    const rule = (direction: "Egress" | "Ingress", name: string) =>
      policyHit({ direction, name, tier: "security", action: "Allow", rule: 0 });
    const counts = { packets: 10, bytes: 1_000, replyPackets: 8, replyBytes: 9_000, started: 2, ended: 1, live: 4 };
    add([flowRow({ ...allowed, reporter: "Source", policies: [rule("Egress", "out")] } as never, counts)]);
    const ingress = { ...allowed, reporter: "Destination", policies: [rule("Ingress", "in")] };
    add([flowRow({ ...ingress, node: "node-2" } as never, counts)], "node-2");
    add([flowRow({ ...ingress, node: "node-3" } as never, counts)], "node-3");
    add([flowRow({ from: outside, reporter: "Destination" })], "node-2");
  };
  const named = ({ flows }: Message) =>
    flows.map(({ flow }: Message) => `${flow.Key.source_name}>${flow.Key.dest_name}`);

  it("lists flows of all nodes, in and out as the end that reports sees them", async () => {
    addTypical();
    const { meta, flows } = await client().call("Flows/List", { sort_by: [{ sort_by: 1 }] });
    expect(meta).toEqual({ totalPages: 1, totalResults: 3 });
    const [source, destination, denied] = flows.sort(
      (a: Message, b: Message) => a.flow.Key.reporter - b.flow.Key.reporter,
    );
    expect(source.flow).toMatchObject({
      ...{ packets_in: 8, packets_out: 10, bytes_in: 9_000, bytes_out: 1_000 },
      ...{ num_connections_started: 2, num_connections_completed: 1, num_connections_live: 4 },
      ...{
        start_time: START / 1_000 - 15,
        end_time: START / 1_000,
        source_labels: ["app=web"],
        dest_labels: ["app=api"],
      },
      Key: {
        ...{ source_name: "web", source_namespace: "shop", source_type: 1, dest_name: "api", dest_namespace: "pay" },
        ...{ dest_port: 8080, proto: "tcp", reporter: 1, action: 1, dest_service_name: "database" },
        ...{ dest_service_namespace: "pay", dest_service_port_name: "sql", dest_service_port: 0 },
      },
    });
    expect(source.flow.Key.policies.enforced_policies).toEqual([
      {
        ...{ kind: 1, namespace: "pay", name: "out", tier: "security" },
        ...{ action: 1, policy_index: 0, rule_index: 0, trigger: undefined },
      },
    ]);
    // What two nodes counted is one flow.
    const { flow } = destination.flow.Key.dest_name === "api" ? destination : denied;
    expect([flow.packets_in, flow.packets_out, flow.bytes_in, flow.num_connections_live]).toEqual([20, 16, 2_000, 8]);
    const other = destination.flow.Key.dest_name === "api" ? denied : destination;
    expect(other.flow.Key).toMatchObject({ source_name: "pub", source_namespace: "-", source_type: 4, action: 2 });
    expect(other.flow.Key.policies.enforced_policies[0]).toMatchObject({ rule_index: 2, action: 2 });
  });

  it("shows what one node counted for both ends as each end saw it", async () => {
    const egress = policyHit({ direction: "Egress", name: "out", action: "Allow" });
    add([flowRow({ reporter: "Both", policies: [egress, policyHit()] })]);
    const { flows } = await client().call("Flows/List");
    const seen = flows.map(({ flow }: Message) => [
      ...[flow.Key.reporter, flow.Key.action, flow.packets_in, flow.packets_out],
      ...flow.Key.policies.enforced_policies.map(({ name }: Message) => name),
    ]);
    expect(seen.sort()).toEqual([
      [1, 1, 0, 3, "out"],
      [2, 2, 3, 0, "lock"],
    ]);
    // What the source's own policy denied never came to the destination.
    add([flowRow({ reporter: "Both", port: 1, policies: [policyHit({ direction: "Egress" })] })]);
    const denied = await client().call("Flows/List", { filter: { dest_ports: [{ port: 1 }] } });
    expect(denied.flows.map(({ flow }: Message) => [flow.Key.reporter, flow.Key.action])).toEqual([[1, 2]]);
  });

  it("has the end of a tier with its tier as trigger, and what staged policies would do", async () => {
    const staged = policyHit({ kind: "StagedNetworkPolicy", name: "soon", staged: true, action: "Allow", rule: 1 });
    const { rule: _, ...end } = policyHit({ kind: "EndOfTier", namespace: "", name: "" });
    add([flowRow({ reporter: "Destination", policies: [end], pending: { verdict: "Allow", policies: [staged] } })]);
    const { flows } = await client().call("Flows/List", { filter: { pending_actions: [1], actions: [2] } });
    const { enforced_policies, pending_policies } = flows[0].flow.Key.policies;
    expect(enforced_policies).toMatchObject([
      { kind: 10, tier: "default", rule_index: -1, trigger: { tier: "default" } },
    ]);
    expect(pending_policies).toMatchObject([{ kind: 3, name: "soon", action: 1, rule_index: 1 }]);
  });

  it("filters by each criterion, by both forms of policy matches, and by several at once", async () => {
    addTypical();
    const list = async (filter: Message) => named(await client().call("Flows/List", { filter })).length;
    const match = (value: string, type = EXACT) => [{ value, type }];
    const expected: [filter: Message, flows: number][] = [
      [{ source_names: match("web") }, 2],
      [{ source_names: match("WE", FUZZY) }, 2],
      [{ source_names: match("PUBLIC NETWORK") }, 1],
      [{ source_names: [...match("web"), ...match("pub")] }, 3],
      [{ source_namespaces: match("-") }, 1],
      [{ dest_names: match("ap", FUZZY) }, 2],
      [{ dest_namespaces: match("pay") }, 3],
      [{ protocols: match("tcp") }, 3],
      [{ protocols: match("udp") }, 0],
      [{ dest_ports: [{ port: 5432 }, { port: 1 }] }, 1],
      [{ actions: [2] }, 1],
      [{ actions: [1, 2] }, 3],
      [{ reporter: 1 }, 1],
      [{ policies: [{ tier: { value: "security" } }] }, 2],
      [{ policies: [{ name: { value: "lo", type: FUZZY }, action: 2 }] }, 1],
      [{ policies: [{ kind: 2 }] }, 0],
      [{ old_policies: [{ tier: "security", name: "in" }] }, 1],
      [{ old_policies: [{ tier: "default", action: 1 }] }, 0],
      [{ actions: [1], reporter: 2, policies: [{ namespace: { value: "pay" } }] }, 1],
    ];
    for (const [filter, flows] of expected) expect([filter, await list(filter)]).toEqual([filter, flows]);
  });

  it("sorts, and gives pages", async () => {
    for (const name of ["c", "a", "b", "e", "d"]) {
      add([flowRow({ reporter: "Source", from: workload("shop", name) })]);
      clock.forward(15_000);
    }
    const list = async (request: Message) => named(await client().call("Flows/List", request));
    expect(await list({})).toEqual(["d>db", "e>db", "b>db", "a>db", "c>db"]);
    expect(await list({ sort_by: [{ sort_by: 4 }] })).toEqual(["a>db", "b>db", "c>db", "d>db", "e>db"]);
    expect(await list({ sort_by: [{ sort_by: 4 }], page: 1, page_size: 2 })).toEqual(["c>db", "d>db"]);
    const { meta, flows } = await client().call("Flows/List", { page: 3, page_size: 2 });
    expect([meta, flows]).toEqual([{ totalPages: 3, totalResults: 5 }, []]);
    expect(await list({ start_time_gte: -45 })).toEqual(["d>db", "e>db"]);
    expect(await list({ start_time_lt: -60 })).toEqual(["a>db", "c>db"]);
    const second = START / 1_000;
    expect(await list({ start_time_gte: second, start_time_lt: second + 15 })).toEqual(["a>db"]);
  });

  it("gives hints of each type, narrowed by a filter, in pages", async () => {
    addTypical();
    const hints = async (request: Message) =>
      (await client().call("Flows/FilterHints", request)).hints.map(({ value }: Message) => value);
    expect(await hints({ type: 1 })).toEqual(["api", "db"]);
    expect(await hints({ type: 2 })).toEqual(["pub", "web"]);
    expect(await hints({ type: 3 })).toEqual(["pay"]);
    expect(await hints({ type: 4 })).toEqual(["-", "shop"]);
    expect(await hints({ type: 5 })).toEqual(["default", "security"]);
    expect(await hints({ type: 6 })).toEqual(["in", "lock", "out"]);
    expect(await hints({ type: 6, page: 1, page_size: 2 })).toEqual(["out"]);
    expect(await hints({ type: 7 })).toEqual(["CalicoNetworkPolicy"]);
    expect(await hints({ type: 8 })).toEqual(["pay"]);
    expect(await hints({ type: 1, filter: { actions: [2] } })).toEqual(["db"]);
  });

  it("counts packets, bytes and open connections, by policy and by rule, in one or in a series", async () => {
    addTypical();
    const one = (results: Message[], name: string) => results.find(({ policy }) => policy.name === name);
    const packets = await client().all("Statistics/List", { type: 0 });
    expect(packets).toHaveLength(3);
    expect(one(packets, "in")).toMatchObject({
      direction: 0,
      allowed_in: [20],
      allowed_out: [16],
      denied_in: [0],
      x: [],
    });
    expect(one(packets, "out")).toMatchObject({ allowed_in: [8], allowed_out: [10] });
    expect(one(packets, "lock")).toMatchObject({ denied_in: [3], allowed_in: [0], passed_in: [0] });
    const bytes = await client().all("Statistics/List", { type: 1, group_by: 1 });
    expect(one(bytes, "lock")).toMatchObject({
      direction: 1,
      type: 1,
      group_by: 1,
      denied_in: [180],
      policy: { rule_index: 2, action: 2 },
    });
    expect(one(bytes, "out")).toMatchObject({ direction: 2, allowed_in: [9_000], allowed_out: [1_000] });
    const live = await client().all("Statistics/List", { type: 2, policy_match: { tier: { value: "security" } } });
    expect(live.map(({ policy, allowed_in, allowed_out }) => [policy.name, allowed_in, allowed_out])).toEqual([
      ["in", [8], [0]],
      ["out", [0], [4]],
    ]);
    clock.forward(30_000);
    addTypical();
    const series = await client().all("Statistics/List", { time_series: 1 });
    const first = START / 1_000 - 15;
    expect(one(series, "lock")).toMatchObject({ x: [first, first + 30], denied_in: [3, 3] });
  });

  it("streams each window once when it is complete, from the past on or from now", async () => {
    addTypical();
    const past = client().stream("Flows/Stream", { start_time_gte: -60, filter: { actions: [2] } });
    const recent = client().stream("Flows/Stream", {});
    clock.forward(15_000);
    await expect.poll(() => past.got.length).toBe(1);
    const [{ id, flow }] = past.got;
    expect(flow).toMatchObject({ start_time: START / 1_000 - 15, end_time: START / 1_000, packets_in: 3 });
    clock.forward(5_000);
    addTypical();
    clock.forward(25_000);
    await expect.poll(() => past.got.length).toBe(2);
    // The same flow in its next window.
    expect(past.got[1]).toMatchObject({ id, flow: { start_time: START / 1_000 + 15, packets_in: 3 } });
    await expect.poll(() => recent.got.length).toBe(3);
    expect(new Set(recent.got.map((result) => result.flow.start_time))).toEqual(new Set([START / 1_000 + 15]));
  });

  it("takes flows of others once, with a receipt for each, also when they are sent again on another connection", async () => {
    const start = START / 1_000 - 30;
    const update = (port: number) => ({
      flow: {
        Key: {
          ...{
            source_name: "web",
            source_namespace: "shop",
            source_type: 1,
            dest_name: "pvt",
            dest_namespace: "-",
            dest_type: 4,
          },
          ...{ dest_port: port, proto: "tcp", reporter: 1, action: 1 },
          policies: { enforced_policies: [{ kind: 9, name: "kns.shop", action: 1, policy_index: 0 }] },
        },
        ...{ start_time: start, end_time: start, source_labels: ["app=web", "tier=front"] },
        ...{ packets_in: 8, packets_out: 10, bytes_in: 900, bytes_out: 100, num_connections_started: 1 },
      },
    });
    for (let connection = 0; connection < 3; connection++) {
      const { got, send, ended, close } = connect(AGENT).stream("FlowCollector/Connect");
      for (let port = 1; port <= 100; port++) send(update(port));
      await expect.poll(() => got.length).toBe(100);
      close();
      await ended;
    }
    const { flows, totals } = store.list({});
    expect(totals).toMatchObject({ flows: 100, packets: 1_000, replyPackets: 800, bytes: 10_000, replyBytes: 90_000 });
    expect(flows[0]?.key).toMatchObject({
      ...{ from: { name: "web", labels: { app: "web", tier: "front" } }, to: { type: "Outside", name: "private" } },
      ...{
        verdict: "Allow",
        reporter: "Source",
        protocol: "TCP",
        policies: [{ kind: "Profile", direction: "Egress" }],
      },
    });
    // And they are shown as they came.
    const listed = await client().call("Flows/List", { filter: { dest_ports: [{ port: 7 }] } });
    expect(listed.flows[0].flow).toMatchObject({ ...update(7).flow, end_time: start + 15 });
  });

  it("shows flows to its readers only, and takes them from agents", async () => {
    const refused = { status: 7, message: expect.stringMatching(/^the certificate is vendor-/) };
    for (const method of ["Flows/List", "Flows/FilterHints", "Flows/Stream", "Statistics/List"]) {
      await expect(client(AGENT).call(method)).rejects.toMatchObject(refused);
      await expect(client(STRANGER).call(method)).rejects.toMatchObject(refused);
    }
    await expect(client(STRANGER).call("FlowCollector/Connect")).rejects.toMatchObject(refused);
    await expect(client(READER).call("FlowCollector/Connect")).rejects.toMatchObject(refused);
    const other = certificate("vendor-flow-client");
    expect((await client(other).call("Flows/List")).meta).toEqual({ totalPages: 0, totalResults: 0 });
    await expect(client().call("Flows/List")).resolves.toBeDefined();
    const unsigned = createAuthority({ commonName: "vendor-flow-ui" }, new Date(Date.now() - 60_000), 1);
    await expect(client(unsigned).call("Flows/List")).rejects.toThrow();
  });

  it("says in one sentence what is wrong with a request", async () => {
    const refusals: [method: string, request: Message, message: RegExp][] = [
      ["Flows/List", { sort_by: [{ sort_by: 7 }] }, /^sort_by is 7; there are 0 to 6$/],
      ["Flows/List", { sort_by: [{}, {}] }, /^sort_by has 2 orders/],
      ["Flows/List", { page: 1 }, /without page_size/],
      ["Flows/List", { page_size: -1 }, /cannot be/],
      ["Flows/List", { aggregation_interval: 20 }, /a multiple of 15/],
      ["Flows/List", { start_time_gte: -10, start_time_lt: -20 }, /is after start_time_lt/],
      ["Flows/List", { filter: { actions: [9] } }, /^actions has 9, which is none of 1 \(Allow\)/],
      ["Flows/List", { filter: { reporter: 3 } }, /^reporter has 3/],
      ["Flows/List", { filter: { source_names: [{ type: 2 }] } }, /match of type 2/],
      ["Flows/List", { filter: { dest_ports: Array(101).fill({}) } }, /101 values, more than 100/],
      ["Flows/List", { filter: { old_policies: [{ tier: "\n\u007f" }] } }, /cannot be read/],
      ["Flows/FilterHints", {}, /^type is 0; hints are of types 1 to 8$/],
      ["Flows/Stream", { aggregation_interval: 30 }, /has to be 15/],
      ["Statistics/List", { type: 3 }, /^type is 3/],
      ["Statistics/List", { group_by: 2 }, /^group_by is 2/],
    ];
    for (const [method, request, message] of refusals) {
      await expect(client().call(method, request)).rejects.toMatchObject({
        status: 3,
        message: expect.stringMatching(message),
      });
    }
    const send = async (flow: Message) => {
      const { send, ended } = client(AGENT).stream("FlowCollector/Connect");
      send({ flow });
      return await ended;
    };
    const key = { ...{ source_type: 1, dest_type: 1, reporter: 1, action: 1 }, proto: "tcp" };
    expect(await send(undefined)).toMatchObject({ status: 3, message: expect.stringContaining("no flow") });
    expect(await send({ Key: { ...key, source_type: 0 } })).toMatchObject({
      status: 3,
      message: "source_type is 0; there are 1 to 4",
    });
    expect(await send({ Key: key, packets_in: -1 })).toMatchObject({
      status: 3,
      message: expect.stringContaining("packets_in is -1"),
    });
    expect(await send({ Key: { ...key, dest_name: "x".repeat(600) } })).toMatchObject({ status: 3 });
    expect(store.list({}).flows).toEqual([]);
  });

  it("survives any bytes: they end their own call, and the next is answered", async () => {
    const random = randomFrom(7);
    const { session } = connect(READER);
    const calls: Promise<string>[] = [];
    for (let index = 0; index < 200; index++) {
      const [method = ""] = [["Flows/List", "Flows/FilterHints", "Flows/Stream", "Statistics/List"][index % 4]];
      const garbage = Buffer.from(
        Array.from({ length: 1 + Math.floor(random() * 300) }, () => Math.floor(random() * 256)),
      );
      const content = index % 3 === 0 ? garbage : frame(garbage);
      calls.push(
        new Promise((resolve) => {
          const stream = session.request({ ":method": "POST", ":path": `/goldmane.${method}` });
          let status = "closed";
          const see = (headers: Record<string, unknown>) => {
            status = String(headers["grpc-status"] ?? status);
            if (status === "closed" || status === "0") stream.close();
          };
          stream
            .on("response", see)
            .on("trailers", see)
            .on("error", () => undefined);
          stream.on("close", () => resolve(status)).resume();
          stream.end(content);
        }),
      );
    }
    // 0: what looks like fields of others is a request without criteria.
    for (const status of await Promise.all(calls)) expect(["closed", "0", "3", "8", "12"]).toContain(status);
    let nested = Buffer.alloc(0);
    for (let depth = 0; depth < 20_000; depth++)
      nested = Buffer.concat([Buffer.from([0x42, 0]), nested.subarray(0, 100)]);
    for (const field of ["enforced_policies", "pending_policies"]) {
      const request = { filter: { source_names: [{ value: `${field}${nested.toString("latin1")}` }] } };
      expect((await client().call("Flows/List", request)).flows).toEqual([]);
    }
    const long = { filter: { source_names: [{ value: "x".repeat(300_000) }] } };
    await expect(client().call("Flows/List", long)).rejects.toMatchObject({ status: 8 });
    expect((await client().call("Flows/List")).flows).toEqual([]);
  });

  it("bounds what a client makes it do at a time, and others are answered", async () => {
    const many = connect(READER);
    const refused = Array.from({ length: 1_000 }, () => many.stream("Flows/Stream", {}));
    const failures = await Promise.race([
      Promise.all(refused.slice(32).map(({ ended }) => ended)),
      Promise.all(refused.slice(16, 32).map(({ ended }) => ended)),
    ]);
    expect(failures[0]).toMatchObject({ status: 8, message: expect.stringContaining("try again later") });
    const other = certificate("vendor-flow-client");
    expect((await client(other).call("Flows/List")).flows).toEqual([]);
    many.close();
    await Promise.all(refused.map(({ ended }) => ended));
    expect((await connect(READER).call("Flows/List")).flows).toEqual([]);
  });

  it("lets go of a client that does not read, and keeps one window for it at most", async () => {
    add(Array.from({ length: 500 }, (_, port) => flowRow({ reporter: "Source", port })));
    const slow = publicClient(port, READER, AUTHORITY.certificate, { initialWindowSize: 16 });
    const { session } = slow;
    const stream = session.request({ ":method": "POST", ":path": "/goldmane.Flows/Stream" });
    stream.on("error", () => undefined);
    stream.end(frame(write("FlowStreamRequest", { start_time_gte: -60 })));
    await new Promise((resolve) => stream.on("response", resolve));

    clock.forward(15_000);
    const { got, close } = client().stream("Flows/Stream", { start_time_gte: -60 });
    await expect.poll(() => got.length).toBe(500);
    close();
    clock.forward(31_000);
    await expect.poll(() => stream.closed).toBe(true);
    slow.close();
  });
});
