import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { until } from "../agent/node-lab.ts";
import { converse, type TrafficRow } from "../switchover/traffic.ts";
import { endsOf, reported } from "./live-addresses.ts";
import {
  type AnswerSettings,
  type LiveClient,
  type LiveLab,
  liveLab,
  type Question,
  whyNoLiveLab,
} from "./live-lab.ts";
import { at, LIVE_ROWS } from "./live-rows.ts";
import { nodePort } from "./live-services.ts";
import { countReplies, type ReplyCounting } from "./reply-counters.ts";

const why = whyNoLiveLab();
const TUNNEL: AnswerSettings = { bpfExternalServiceMode: "Tunnel", bpfDSROptoutCIDRs: [] };
const STRAIGHT: AnswerSettings = { bpfExternalServiceMode: "DSR", bpfDSROptoutCIDRs: [] };
const MODES = [
  ["through the tunnel", TUNNEL],
  ["straight", STRAIGHT],
] as const;
const WAYS = [
  { family: 4, udp: undefined },
  { family: 6, udp: undefined },
  { family: 4, udp: "unconnected" },
  { family: 6, udp: "connected" },
] as const;
/** Of questions while an agent is replaced. */
const ROUNDS = 3;
/** In the full run, more connections of each kind. */
const MANY = process.env["DIRECT"] === "full" ? { tcp: 100, udp: 20 } : { tcp: 10, udp: 4 };

/** A client outside asks a port of the first node, and its backend is on the second. */
describe.skipIf(why !== undefined)(`answers to clients outside${why ? ` (${why})` : ""}`, () => {
  let lab: LiveLab;
  let answers: ReplyCounting;
  beforeAll(async () => {
    lab = await liveLab();
    answers = await countReplies(lab.segment, { port: nodePort("far"), first: lab.nodes[0]!.addresses });
  });
  afterAll(() => lab?.close());
  beforeEach(() => lab.configure(TUNNEL));

  /** Of each length, over TCP and UDP and in both families: the backend answers, and sees the client itself. */
  const ask = async (from: LiveClient, { tcp, udp } = { tcp: 1, udp: 1 }) => {
    const questions = WAYS.map(
      ({ family, ...way }): Question => ({ from, ...at("far", "node-1", family), ...way, length: way.udp ? udp : tcp }),
    );
    const [v4, v6] = lab.addressesOf(from);
    expect((await lab.request(questions)).flat()).toEqual([v4, v6, v4, v6].map((client) => ({ by: "two", client })));
  };

  it("by the tunnel, the pod sees the client, and its answers pass the node that was asked", async () => {
    await answers.quiet();
    await ask("neighbour");
    expect(await answers.sample()).toEqual({
      first: expect.toSatisfy(some),
      second: 0,
      tunnel: expect.toSatisfy(some),
    });
  });

  it("straight, the pod sees the client, and no answer passes the node that was asked", async () => {
    await lab.configure(STRAIGHT);
    await answers.quiet();
    await ask("neighbour");
    await ask("distant");
    expect(await answers.sample()).toEqual({ first: 0, second: expect.toSatisfy(some), tunnel: 0 });
  });

  it("clients who must not be answered straight are answered through the tunnel, and others are not", async () => {
    const own = [...lab.addressesOf("stranger")].map((address) => `${address}/${address.includes(":") ? 128 : 32}`);
    await lab.configure({ ...STRAIGHT, bpfDSROptoutCIDRs: own });
    await answers.quiet();
    await ask("stranger");
    expect(await answers.sample()).toEqual({
      first: expect.toSatisfy(some),
      second: 0,
      tunnel: expect.toSatisfy(some),
    });
    await answers.quiet();
    await ask("neighbour");
    expect(await answers.sample()).toEqual({ first: 0, second: expect.toSatisfy(some), tunnel: 0 });
  });

  describe.each(MODES)("%s", (_mode, spec) => {
    beforeEach(async () => {
      await lab.configure(spec);
      await lab.forgetPaths();
    });

    it("much is said and answered, and what does not fit the tunnel gets through in pieces", async () => {
      // Datagrams as long as the client's own link takes, which is longer than the tunnel does.
      await ask("neighbour", { tcp: 1_000_000, udp: 1440 });
    });

    it("answers get through where a router on their way takes only shorter packets, and says so", async () => {
      await ask("distant", { tcp: 1_000_000, udp: 1350 });
    });

    it("pieces of answers that are too long for that router get through in smaller ones", async () => {
      await ask("distant", { tcp: 1, udp: 4000 });
    });
  });

  it("while the agent of the backend's node is replaced, the pod sees the client as before", async () => {
    await lab.replacingAgent(async () => {
      for (let round = 0; round < ROUNDS; round++) await ask("neighbour");
    });
  });

  it("everything else is as ever where answers go straight", async () => {
    await lab.configure(STRAIGHT);
    const rows = Object.values(LIVE_ROWS).flat();
    const ends = await endsOf(lab, rows);
    const wrong = rows.filter((row) => reported(lab, row, ends.get(row)!) !== row.becomes);
    expect(wrong.map((row) => `${row.title}: ${reported(lab, row, ends.get(row)!)}`)).toEqual([]);
  });

  it("connections live on from tunnel to straight and back, and new ones begin as they should", async () => {
    const before = await talk(lab);
    await lab.configure(STRAIGHT);
    await before.goesOn();
    await answers.sample();
    const between = await talk(lab);
    expect((await answers.sample()).second).toSatisfy(some);
    await lab.configure(TUNNEL);
    await between.goesOn();
    const after = await talk(lab);
    for (const one of [before, between, after]) {
      await one.goesOn();
      const { lost, astray, moved, flows } = await one.end();
      expect({ lost, astray, moved, flows }).toEqual({
        lost: 0,
        astray: 0,
        moved: 0,
        flows: 2 * (MANY.tcp + MANY.udp),
      });
    }
  });
});

function some(packets: number): boolean {
  return packets > 0;
}

interface Talk {
  /** Resolves when every flow has been answered some more. */
  goesOn(): Promise<void>;
  /** What became of all of them, once nobody waits for an answer. */
  end(): Promise<TrafficRow>;
}

/** Connections that stay open, and flows of datagrams. */
async function talk(lab: LiveLab): Promise<Talk> {
  const flows = ([4, 6] as const).flatMap((family) =>
    (["tcp", "udp"] as const).map((protocol) => ({
      name: "all",
      protocol,
      ...at("far", "node-1", family),
      count: MANY[protocol],
    })),
  );
  const traffic = await converse([{ netns: lab.netnsOf("neighbour"), flows }], 200);
  const report = async () => (await traffic.report())["all"]!;
  return {
    async goesOn() {
      const { sent, unanswered, flows: count } = await report();
      const enough = sent - unanswered + 3 * count;
      await until(
        async () => {
          const now = await report();
          return now.lost > 0 || now.sent - now.unanswered >= enough;
        },
        () => "flows are not answered any more",
      );
    },
    async end() {
      traffic.hush(true);
      await until(
        async () => (await report()).unanswered === 0,
        () => "some are never answered",
      );
      const row = await report();
      traffic.stop();
      return row;
    },
  };
}
