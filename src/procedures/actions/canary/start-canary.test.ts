import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { vendorNames } from "../../../api/names.ts";
import type { TrafficRow } from "../../../api/protocol/traffic-report.ts";
import type { Client } from "../../../cluster/client.ts";
import { NAMESPACES } from "../../../cluster/kinds.ts";
import { fakeClock } from "../../../kit/fake-clock.ts";
import type { Work } from "../../action.ts";
import { DEFAULT_BUDGET } from "../../canary/budget.ts";
import { clientNames, namespaceObject } from "../../canary/canary-objects.ts";
import { type BareCluster, bareCluster } from "../../testing/bare-cluster.ts";
import { startCanary } from "./start-canary.ts";
import { settledInsideBudget } from "./watch-canary.ts";

const good: TrafficRow = {
  ...{ way: "service-local", protocol: "tcp", reached: true, opened: 20, lost: 0, replaced: 0 },
  ...{ silenceMs: 80, sent: 0, unanswered: 0 },
};
const lossy: TrafficRow = { ...good, way: "node-port-local", lost: 3 };
const dumb: TrafficRow = { ...good, way: "node-port-remote", reached: false, opened: 0 };

describe("traffic before anything changes", () => {
  let cluster: BareCluster;
  let client: Client;
  let rows: TrafficRow[];
  let said: string[];
  beforeEach(async () => {
    said = [];
    cluster = await bareCluster();
    client = cluster.client;
    await client.create(NAMESPACES, namespaceObject("one"));
  });
  afterEach(() => cluster.close());

  /** Does it with clients that say these rows, and time that passes. */
  async function during<T>(does: (work: Work) => Promise<T>): Promise<T> {
    const clock = fakeClock();
    const speaking: Client = {
      ...client,
      raw: async () => {
        const line = JSON.stringify({ seconds: 10 + clock.now() / 1000, rows });
        return new Response(line) as unknown as Awaited<ReturnType<Client["raw"]>>;
      },
    };
    const { files, tools, signal } = cluster.engine();
    const keep = async () => {};
    const say = (text: string) => void said.push(text);
    let over = false;
    const reports = { say, waitingFor: say, measured: say, keep };
    const done = does({ client: speaking, names: vendorNames, clock, files, tools, signal, ...reports }).finally(() => {
      over = true;
    });
    done.catch(() => {});
    while (!over) await clock.advance(500);
    return await done;
  }
  const nodes = [{ name: "n1", address: "172.18.0.2" }];
  const confirm = (force: boolean) =>
    during(async (work) => {
      const inputs = { nodes, image: "vendor", budget: DEFAULT_BUDGET, ...(force && { force }) };
      await startCanary.confirm?.(inputs as typeof inputs & { force?: true }, work, { id: "one" });
    });
  const judge = (more?: { switches: true }) =>
    during((work) =>
      settledInsideBudget({ clients: clientNames(nodes.length), budget: DEFAULT_BUDGET, ...more }, work),
    );

  it("that is well is measured from there on, and all of it is judged", async () => {
    rows = [good];
    await confirm(false);
    rows = [{ ...good, lost: 1 }];
    await expect(judge()).rejects.toMatchObject({ code: "CANARY_OVER_BUDGET" });
  });

  it.each([
    ["pod-other-node", true, "CANARY_OVER_BUDGET"],
    ["node-port-remote", undefined, "CANARY_OVER_BUDGET"],
    ["node-port-remote", true, undefined],
  ] as const)("in which servers saw clients on %s, and then do not (switches: %s)", async (way, switches, code) => {
    rows = [{ ...good, way }];
    await confirm(false);
    rows = [{ ...good, way, opened: 40, replaced: 2 }];
    const judged = judge(switches && { switches });
    if (code === undefined) expect(await judged).toMatchObject([{ opened: 40, replaced: 4 }]);
    else
      await expect(judged).rejects.toMatchObject({ code, message: expect.stringContaining("for 4 of 40 connections") });
  });

  it("in which servers see another address from the start, is allowed to go on so", async () => {
    rows = [{ ...good, replaced: 20 }];
    await confirm(false);
    rows = [{ ...good, opened: 40, replaced: 40 }];
    expect(await judge()).toMatchObject([{ replaced: 40 }]);
  });

  it.each([
    ["loses too much", () => lossy, /node-port-local by TCP: /],
    ["is never answered", () => dumb, /there is no answer on node-port-remote by tcp/],
  ])("that %s on one way is refused; forced, that way does not count and the others do", async (_, bad, why) => {
    rows = [good, bad()];
    await expect(confirm(false)).rejects.toMatchObject({
      code: "CANARY_NOT_CLEAN",
      message: expect.stringMatching(why),
    });
    await confirm(true);
    expect(said.at(-1)).toMatch(/^traffic already fails: .*; only the 1 healthy paths count$/);
    rows = [good, { ...bad(), reached: true, lost: 9 }];
    expect(await judge()).toHaveLength(2);
    rows = [{ ...good, lost: 1 }, bad()];
    await expect(judge()).rejects.toMatchObject({
      code: "CANARY_OVER_BUDGET",
      message: expect.stringContaining("service-local by TCP: "),
    });
  });
});
