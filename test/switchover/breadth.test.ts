import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until, whyNoNodes } from "../agent/node-lab.ts";
import { type BreadthLab, breadthLab } from "./breadth-lab.ts";
import type { Traffic, TrafficRow } from "./traffic.ts";

const why = whyNoNodes();
const FULL = process.env["HANDOVER"] === "full";
/** Longer than the kernel and the programs remember a flow of datagrams, which is two minutes. */
const LONG_MS = 190_000;
const SHORT = { there: 0, back: 0 };
/** `idle`: how long nobody speaks on some connections, from before each change on; at least as long as it takes. */
const LABS = FULL
  ? [
      { proxy: "iptables", withoutLookup: "nowhere", idle: { there: LONG_MS, back: 0 } },
      { proxy: "nftables", withoutLookup: "nowhere", idle: { there: 0, back: LONG_MS } },
      // Longer than the kernel remembers the first datagrams of a flow.
      { proxy: "iptables", withoutLookup: "everywhere", idle: { there: 40_000, back: 0 } },
    ]
  : [{ proxy: "iptables", withoutLookup: "on node-3", idle: SHORT }];
const INTERVAL_MS = FULL ? 100 : 400;
const MINUTES = 60_000;

type Phase = "before" | "in eBPF" | "after";

/** What was seen on the way there and back. */
interface Journey {
  /** Connections from before, and those begun in eBPF. */
  old: Record<string, TrafficRow>;
  born: Record<string, TrafficRow>;
  told: Record<Phase, Record<string, TrafficRow>>;
  pathMtus: Record<Phase, Record<string, number | undefined>>;
  sticky: Record<Phase, Record<string, TrafficRow>>;
  refusals: Record<Phase, Record<string, TrafficRow>>;
  knocks: { tried: number; answered: number };
  heard: { stranger: number; friend: number };
  /** Datagrams that reached a socket whose process had no time for them. */
  overflown: number;
}

describe.skipIf(why !== undefined).each(LABS)(
  `there and back beside $proxy, programs that cannot ask the kernel for its connections: $withoutLookup${why ? ` (${why})` : ""}`,
  ({ proxy, withoutLookup, idle }) => {
    let world: BreadthLab;
    let seen: Journey;
    beforeAll(
      async () => {
        const isBlind = (node: string) => withoutLookup === "everywhere" || withoutLookup === `on ${node}`;
        world = await breadthLab({ proxy: proxy as "iptables" | "nftables", withoutLookup: isBlind });
        seen = await travel(world, idle);
        print("from before", seen.old);
        print("begun in eBPF", seen.born);
        for (const [phase, rows] of Object.entries(seen.told)) print(`begun anew ${phase}`, rows);
        process.stdout.write(
          `denied: ${JSON.stringify(seen.knocks)}, heard: ${JSON.stringify(seen.heard)}, datagrams nobody took in time: ${seen.overflown}\n`,
        );
      },
      FULL ? 15 * MINUTES : undefined,
    );
    afterAll(() => world?.close());

    const kept = (prefix: string, slack = 0) => {
      for (const [when, rows] of Object.entries({ "from before": seen.old, "begun in eBPF": seen.born })) {
        const found = Object.entries(rows).filter(([name]) => name.startsWith(prefix));
        expect(found.length, prefix).toBeGreaterThan(0);
        for (const [name, { lost, moved, astray, unanswered, why: reasons }] of found) {
          const isWhole = { name, when, lost, moved, astray, reasons };
          expect(isWhole).toEqual({ name, when, lost: 0, moved: 0, astray: 0, reasons: [] });
          expect(unanswered, `${name}, ${when}: unanswered`).toBeLessThanOrEqual(slack + seen.overflown);
        }
      }
    };

    it("connections of IPv4 and of IPv6 go on, whichever way they take", () => {
      for (const family of ["v4", "v6"]) kept(`plain ${family}`);
    });

    it("nodes may change one after the other: between any two of three connections go on", () => kept("three"));

    // Datagrams after two minutes of silence begin a new flow: nothing is lost, but of several backends it may choose another.
    it("connections nobody speaks on meanwhile are there when somebody does", () => kept("idle"));

    it("so do those to services that no pod answers for, but a node itself or a machine outside", () =>
      kept("machines"));

    it("a pod goes on talking to itself through its service", () => kept("itself"));

    // What the sender does not know to be too long for the way is lost once.
    it("datagrams in pieces are answered whole", () => kept("pieces", 1));

    it("connections that carry much go on", () => kept("bulk"));

    it.each(["before", "in eBPF", "after"] as const)(
      "whoever sends too long a packet is told what fits, by the address it spoke to: %s",
      (phase) => {
        for (const [name, row] of Object.entries(seen.told[phase])) {
          expect({ name, lost: row.lost, why: row.why }).toEqual({ name, lost: 0, why: [] });
          if (name.startsWith("too big")) expect(row.told, name).toBeGreaterThan(0);
        }
        for (const [way, mtu] of Object.entries(seen.pathMtus[phase])) expect({ way, mtu }).toEqual({ way, mtu: 1450 });
      },
    );

    it("a port nobody listens at is refused to the socket that asked, on new flows and on old ones", () => {
      const refusedTo = (rows: Record<string, TrafficRow>) =>
        Object.fromEntries(
          Object.entries(rows).flatMap(([name, { told }]) => (name.startsWith("refused") ? [[name, told]] : [])),
        );
      for (const rows of Object.values(seen.told)) {
        for (const [name, told] of Object.entries(refusedTo(rows))) expect(told, name).toBeGreaterThan(0);
      }
      const [before, during, after] = [seen.refusals.before, seen.refusals["in eBPF"], seen.refusals.after].map(
        refusedTo,
      );
      for (const name of Object.keys(before!)) {
        expect(during![name], name).toBeGreaterThan(before![name]!);
        expect(after![name], name).toBeGreaterThan(during![name]!);
      }
    });

    it("a client that stays with its backend does so on either data plane, and from one to the other", () => {
      for (const name of Object.keys(seen.sticky.before)) {
        const servers = Object.values(seen.sticky).map((rows) => rows[name]!.servers);
        expect(servers, name).toEqual([servers[0], servers[0], servers[0]]);
        expect(servers[0], name).toHaveLength(1);
      }
      kept("sticky");
    });

    it("who is denied is not heard for a moment, and who is allowed always", () => {
      expect(seen.knocks.answered).toBe(0);
      expect(seen.heard.stranger).toBe(0);
      expect(seen.knocks.tried).toBeGreaterThan(500);
      expect(seen.heard.friend).toBeGreaterThan(0);
      kept("allowed");
    });
  },
);

async function travel(world: BreadthLab, idle: Record<"there" | "back", number>): Promise<Journey> {
  const { switching } = world;
  const seen: Pick<Journey, "told" | "pathMtus" | "sticky" | "refusals"> = {
    told: {} as Journey["told"],
    pathMtus: {} as Journey["pathMtus"],
    sticky: {} as Journey["sticky"],
    refusals: {} as Journey["refusals"],
  };
  const knocking = await world.knock();
  const converse = () =>
    switching.converse(world.paths(), INTERVAL_MS).catch(async (error: Error) => {
      for (const [, port] of error.message.matchAll(/from port (\d+)/g)) await printTraces(world, error.message, port);
      throw error;
    });
  const old = await converse();
  const look = async (phase: Phase) => {
    seen.told[phase] = await world.imported();
    seen.pathMtus[phase] = await world.pathMtus();
    seen.sticky[phase] = await world.sticky();
    seen.refusals[phase] = await old.report();
    await printTracesOfLost(world, seen.refusals[phase], phase);
  };
  await look("before");
  let quietSince = Date.now();
  for (const node of switching.nodes) await switching.switchNode("BPF", node);
  await idleUntil(quietSince + idle.there);
  await wakeUp([old]);
  const born = await converse();
  await look("in eBPF");
  quietSince = Date.now();
  for (const node of switching.nodes) await switching.switchNode("Nftables", node);
  await idleUntil(quietSince + idle.back);
  await wakeUp([old, born]);
  await look("after");
  const knocks = (await knocking.ask()) as Journey["knocks"];
  const heard = await world.heard();
  const overflown = await world.overflown();
  const [oldRows, bornRows] = [await lastWords(old), await lastWords(born)];
  return { ...seen, old: oldRows, born: bornRows, knocks, heard, overflown };
}

/** What the kernel and the programs of each node have of a flow that hangs, while it does. */
async function printTracesOfLost(world: BreadthLab, rows: Record<string, TrafficRow>, phase: Phase): Promise<void> {
  for (const [name, { why: reasons }] of Object.entries(rows)) {
    for (const port of reasons.flatMap((reason) => /from port (\d+)/.exec(reason)?.[1] ?? []))
      await printTraces(world, `${phase}, ${name}`, port);
  }
}

async function printTraces(world: BreadthLab, of: string, port: string | undefined): Promise<void> {
  process.stdout.write(`${of}, port ${port}:\n${(await world.traces(Number(port))).join("\n")}\n`);
}

async function idleUntil(when: number): Promise<void> {
  await until(
    () => Date.now() >= when,
    () => "",
    LONG_MS + 1_000,
  );
}

/** Those that are to be idle have each been answered a few times; then they are idle again. */
async function wakeUp(all: readonly Traffic[]): Promise<void> {
  for (const one of all) {
    const answers = async () =>
      Object.entries(await one.report()).flatMap(([name, { sent, unanswered, lost }]) =>
        name.startsWith("idle") ? [{ answered: sent - unanswered, lost }] : [],
      );
    const before = await answers();
    one.wake(true);
    const went = async () =>
      (await answers()).every(({ answered, lost }, at) => lost > 0 || answered > before[at]!.answered + 2);
    // Who is not answered is found among the lost.
    await until(went, () => "", 10_000).catch(() => undefined);
    one.wake(false);
  }
}

/** Nobody says anything more, and what is under way has had its time. */
async function lastWords(traffic: Traffic): Promise<Record<string, TrafficRow>> {
  traffic.hush(true);
  const underWay = async () => {
    const rows = Object.entries(await traffic.report());
    return rows.some(([name, { unanswered }]) => !name.startsWith("refused") && unanswered > 0);
  };
  await until(
    async () => !(await underWay()),
    () => "",
    3_000,
  ).catch(() => undefined);
  const rows = await traffic.report();
  traffic.stop();
  return rows;
}

/** A line for each kind. */
function print(when: string, rows: Record<string, TrafficRow>): void {
  const kinds = new Map<string, Pick<TrafficRow, "flows" | "lost" | "sent" | "unanswered" | "told" | "longestMs">>();
  for (const [name, row] of Object.entries(rows)) {
    const kind = name.replace(/:.*/, name.endsWith("udp") ? " udp" : " tcp");
    const sum = kinds.get(kind) ?? { flows: 0, lost: 0, sent: 0, unanswered: 0, told: 0, longestMs: 0 };
    for (const field of ["flows", "lost", "sent", "unanswered", "told"] as const) sum[field] += row[field];
    sum.longestMs = Math.max(sum.longestMs, row.longestMs);
    kinds.set(kind, sum);
  }
  const lines = [...kinds].map(
    ([kind, { flows, lost, sent, unanswered, told, longestMs }]) =>
      `${kind.padEnd(16)} flows ${flows}  lost ${lost}  sent ${sent}  unanswered ${unanswered}  told ${told}  longest silence ${longestMs} ms`,
  );
  process.stdout.write(`connections ${when}\n${lines.join("\n")}\n`);
}
