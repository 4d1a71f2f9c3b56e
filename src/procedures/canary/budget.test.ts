import { describe, expect, it } from "vitest";
import type { TrafficRow } from "../../api/protocol/traffic-report.ts";
import { type Budget, DEFAULT_BUDGET, healthyBefore, overBudget } from "./budget.ts";
import { since, together } from "./figures.ts";

const tcp: TrafficRow = {
  way: "service-remote",
  protocol: "tcp",
  reached: true,
  opened: 20,
  lost: 0,
  replaced: 0,
  silenceMs: 80,
  sent: 0,
  unanswered: 0,
};
const udp: TrafficRow = { ...tcp, protocol: "udp", opened: 0, sent: 9000 };

describe("a budget", () => {
  it.each<[string, TrafficRow, Partial<Budget>, string | undefined]>([
    ["allows what is well", tcp, {}, undefined],
    ["allows no lost connection unless told", { ...tcp, lost: 1 }, {}, "1 of 20 connections were lost"],
    ["allows as many as told", { ...tcp, lost: 2 }, { connections: 2 }, undefined],
    ["allows a second of silence", { ...tcp, silenceMs: 1000 }, {}, undefined],
    ["allows no more silence", { ...udp, silenceMs: 1001 }, {}, "silent for 1001 ms; the budget is 1000 ms"],
    ["allows a share of datagrams", { ...udp, unanswered: 9 }, {}, undefined],
    ["allows no greater share", { ...udp, unanswered: 10 }, {}, "10 of 9000 datagrams were not answered"],
    [
      "allows what one start of kube-proxy takes from each socket, of however few",
      { ...udp, sent: 300, unanswered: 6 },
      {},
      undefined,
    ],
    ["allows no more of few", { ...udp, sent: 300, unanswered: 7 }, {}, "7 of 300 datagrams were not answered"],
    ["allows none where none may be", { ...udp, unanswered: 1 }, { datagramsPercent: 0 }, "1 of 9000 datagrams"],
  ])("%s", (_title, row, change, over) => {
    const said = overBudget([tcp, row, udp], { ...DEFAULT_BUDGET, ...change });
    if (over === undefined) expect(said).toBeUndefined();
    else expect(said).toMatch(new RegExp(`^service-remote by (TCP|UDP): ${over}`));
  });
});

it("judges only the ways that were well before", () => {
  const other = { ...tcp, way: "pod-other-node" };
  const rows = [tcp, udp, other];
  expect(healthyBefore(rows, [], DEFAULT_BUDGET)).toEqual(rows);
  expect(healthyBefore(rows, rows, DEFAULT_BUDGET)).toEqual(rows);
  const before = [{ ...tcp, lost: 1 }, udp, { ...other, reached: false }];
  expect(healthyBefore(rows, before, DEFAULT_BUDGET)).toEqual([udp]);
});

describe("figures", () => {
  it("of several clients add up, but for the longest silence and a way that one of them never reached", () => {
    const other = { ...tcp, lost: 2, silenceMs: 300, reached: false };
    const rows = together([
      { seconds: 5, rows: [tcp, udp] },
      { seconds: 6, rows: [other] },
    ]);
    expect(rows).toEqual([{ ...tcp, opened: 40, lost: 2, silenceMs: 300, reached: false }, udp]);
  });

  it("that were bad before count only what comes on top", () => {
    const before = [{ ...tcp, opened: 5, lost: 5, silenceMs: 2000 }];
    const now = [{ ...tcp, opened: 25, lost: 6, silenceMs: 2000 }, udp];
    expect(since(before, now)).toEqual([{ ...tcp, opened: 20, lost: 1, silenceMs: 0 }, udp]);
  });
});
