import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until, whyNoNodes } from "../agent/node-lab.ts";
import { hasProxyRules } from "./lab-cluster.ts";
import { type SwitchLab, switchLab } from "./switch-lab.ts";
import type { Traffic, TrafficRow } from "./traffic.ts";

/** Once there and back, with connections of every kind, is in breadth.test.ts. */
const FULL = process.env["HANDOVER"] === "full";
const why = whyNoNodes() ?? (FULL ? undefined : "a long run: npm run test:long -- switchover");
/** The older kind also drops by default whatever nobody allows to be forwarded. */
const PROXIES = ["nftables", "iptables"] as const;
const ROUNDS = 10;
/** 1,000 connections in all: eight ways. */
const FLOWS = { tcp: 125, udp: 2 };
const BORN = { tcp: 12, udp: 2 };
const INTERVAL_MS = 400;

/** Connections of every kind live through a change of the data plane on every node, there and back. */
describe.skipIf(why !== undefined).each(PROXIES)(
  `changing the data plane beside a proxy that writes %s${why ? ` (${why})` : ""}`,
  (proxy) => {
    let lab: SwitchLab;
    let traffic: Traffic;
    beforeAll(async () => {
      lab = await switchLab({ proxy });
      await lab.startProxies();
      traffic = await lab.talk(INTERVAL_MS, FLOWS);
    });
    afterAll(async () => {
      traffic?.stop();
      await lab?.close();
    });

    it(`loses no connection, ${ROUNDS} times there and back`, async () => {
      const born: Traffic[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        await lab.switchTo("BPF");
        await lab.stopProxies();
        // The agents take its rules away now that nobody needs them.
        for (const node of lab.nodes)
          await until(
            async () => !(await hasProxyRules(node, proxy)),
            () => node.log(),
          );
        born.push(await lab.talk(INTERVAL_MS, BORN));
        await lab.switchTo("Nftables");
        await settled([traffic, ...born]);
        check("from before", await drained(traffic));
        // Each goes through three changes, which is enough; and what talks takes time from what is measured.
        for (const one of born) check("begun in eBPF", await drained(one));
        for (const one of born.splice(0, born.length - 1)) one.stop();
      }
      for (const one of born) one.stop();
      // Connections that keep a client's address to another node were the last that eBPF carried.
      for (const node of lab.nodes) {
        const isBack = async () => (await lab.reports(node)).dataplane === "Nftables";
        await until(isBack, () => node.log().slice(-3_000), 90_000);
      }
    }, 540_000);
  },
);

/** Until every path has been answered a few times more. */
async function settled(all: readonly Traffic[]): Promise<void> {
  for (const one of all) {
    const before = await one.report();
    const behind = async () =>
      Object.entries(await one.report()).flatMap(([name, row]) =>
        row.lost > 0 || answered(row) >= answered(before[name]!) + 3 * row.flows ? [] : [name],
      );
    await until(
      async () => (await behind()).length === 0,
      async () => `no longer answered: ${(await behind()).join(", ")}`,
      30_000,
    );
  }
}

/** What was sent and not answered once everything under way has had its time: the talkers pause meanwhile. */
async function drained(traffic: Traffic): Promise<Record<string, TrafficRow>> {
  traffic.hush(true);
  const open = async () =>
    Object.values(await traffic.report()).some((row) => row.lost === 0 && row.unanswered > mayMiss(row));
  await until(
    async () => !(await open()),
    () => "",
    10_000,
    // What is missing then is named, path by path, by whoever checks the rows.
  ).catch(() => undefined);
  const rows = await traffic.report();
  traffic.hush(false);
  return rows;
}

const answered = ({ sent, unanswered }: TrafficRow) => sent - unanswered;

/** TCP retransmits: nothing may be missing. Of datagrams, as many as vendorctl's default loss budget allows: 0.1 %. */
function mayMiss({ protocol, sent }: TrafficRow): number {
  return protocol === "tcp" ? 0 : Math.ceil(sent / 1_000);
}

function check(when: string, rows: Record<string, TrafficRow>): void {
  process.stdout.write(`connections ${when}\n`);
  print(rows);
  for (const [name, row] of Object.entries(rows)) {
    expect(row.lost, `${name}, ${when}: ${row.why.join(", ")}`).toBe(0);
    expect(row.moved, `${name}, ${when}: moved to another backend`).toBe(0);
    expect(row.astray, `${name}, ${when}: answered from another address`).toBe(0);
    expect(row.unanswered, `${name}, ${when}: unanswered of ${row.sent}`).toBeLessThanOrEqual(mayMiss(row));
  }
}

function print(rows: Record<string, TrafficRow>): void {
  const lines = Object.entries(rows).map(
    ([name, { flows, lost, sent, unanswered, longestMs }]) =>
      `${name.padEnd(34)} flows ${flows}  lost ${lost}  sent ${sent}  unanswered ${unanswered}  longest silence ${longestMs} ms`,
  );
  process.stdout.write(`${lines.join("\n")}\n`);
}
