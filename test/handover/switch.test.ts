import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { whyNoNodes } from "../agent/node-lab.ts";
import { type SwitchLab, switchLab, type Traffic, type TrafficRow } from "./switch-lab.ts";

const why = whyNoNodes();
const FULL = process.env["HANDOVER"] === "full";
const ROUNDS = FULL ? 10 : 1;
/** 1,000 connections in all: eight ways. */
const FLOWS = FULL ? { tcp: 125, udp: 2 } : { tcp: 4, udp: 2 };
const INTERVAL_MS = FULL ? 400 : 40;

/** Connections of every kind live through a change of the data plane on every node, there and back. */
describe.skipIf(why !== undefined).each(["nftables", "iptables"] as const)(
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
        for (let round = 0; round < ROUNDS; round++) {
          await lab.switchTo("ebpf");
          await lab.stopProxies();
          await lab.startProxies();
          await lab.switchTo("nft");
        }
        const rows = await traffic.report();
        print(rows);
        for (const [name, row] of Object.entries(rows)) {
          expect(row.lost, `${name}: ${row.why.join(", ")}`).toBe(0);
          expect(row.moved, name).toBe(0);
          expect(row.astray, name).toBe(0);
        }
      },
      FULL ? 500_000 : 90_000,
    );
  },
);

function print(rows: Record<string, TrafficRow>): void {
  const lines = Object.entries(rows).map(
    ([name, { flows, lost, sent, unanswered, longestMs }]) =>
      `${name.padEnd(34)} flows ${flows}  lost ${lost}  sent ${sent}  unanswered ${unanswered}  longest silence ${longestMs} ms`,
  );
  process.stdout.write(`${lines.join("\n")}\n`);
}
