import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until, whyNoNodes } from "../agent/node-lab.ts";
import { hasProxyRules } from "./lab-cluster.ts";
import { type SwitchLab, switchLab } from "./switch-lab.ts";
import type { Traffic, TrafficRow } from "./traffic.ts";

const why = whyNoNodes();
const FULL = process.env["HANDOVER"] === "full";
/** The older kind also drops by default whatever nobody allows to be forwarded. */
const PROXIES = FULL ? (["nftables", "iptables"] as const) : (["iptables"] as const);
const ROUNDS = FULL ? 10 : 1;
/** 1,000 connections in all: eight ways. */
const FLOWS = FULL ? { tcp: 125, udp: 2 } : { tcp: 4, udp: 2 };
const BORN = FULL ? { tcp: 12, udp: 2 } : FLOWS;
const INTERVAL_MS = FULL ? 400 : 40;

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
    }, 90_000);
    afterAll(async () => {
      traffic?.stop();
      await lab?.close();
    });

    it(
      `loses no connection, ${ROUNDS} times there and back`,
      async () => {
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
          check("from before", await traffic.report());
          // Each goes through three changes, which is enough; and what talks takes time from what is measured.
          for (const one of born) check("begun in eBPF", await one.report());
          for (const one of born.splice(0, born.length - 1)) one.stop();
        }
        for (const one of born) one.stop();
        if (!FULL) return;
        // Connections that keep a client's address to another node were the last that eBPF carried.
        for (const node of lab.nodes) {
          const isBack = async () => (await lab.says(node)).dataplane === "Nftables";
          await until(isBack, () => node.log().slice(-3_000), 90_000);
        }
      },
      FULL ? 540_000 : 120_000,
    );
  },
);

/** Until everybody has been answered a few times more. */
async function settled(all: readonly Traffic[]): Promise<void> {
  for (const one of all) {
    const answers = async () =>
      Object.values(await one.report()).map(
        ({ sent, unanswered, flows, lost }) => [sent - unanswered, flows, lost] as const,
      );
    const before = await answers();
    const went = async () =>
      (await answers()).every(([now, flows, lost], at) => lost > 0 || now >= before[at]![0] + 3 * flows);
    await until(went, () => "not answered any more", 15_000).catch(() => undefined);
  }
}

function check(when: string, rows: Record<string, TrafficRow>): void {
  process.stdout.write(`connections ${when}\n`);
  print(rows);
  for (const [name, row] of Object.entries(rows)) {
    expect(row.lost, `${name}, ${when}: ${row.why.join(", ")}`).toBe(0);
    expect(row.moved, `${name}, ${when}: moved to another backend`).toBe(0);
    expect(row.astray, `${name}, ${when}: answered from another address`).toBe(0);
    expect(row.unanswered, `${name}, ${when}: unanswered`).toBeLessThan(row.sent / 2);
  }
}

function print(rows: Record<string, TrafficRow>): void {
  const lines = Object.entries(rows).map(
    ([name, { flows, lost, sent, unanswered, longestMs }]) =>
      `${name.padEnd(34)} flows ${flows}  lost ${lost}  sent ${sent}  unanswered ${unanswered}  longest silence ${longestMs} ms`,
  );
  process.stdout.write(`${lines.join("\n")}\n`);
}
