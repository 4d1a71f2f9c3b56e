import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endsOf, reported } from "./live-addresses.ts";
import { type End, type LiveLab, liveLab, whyNoLiveLab } from "./live-lab.ts";
import { LIVE_ROWS, type LiveRow, UNHOOKED_PROCESSES_ASK } from "./live-rows.ts";

const why = whyNoLiveLab();

/** What the packets of test/ebpf do in the programs, done with sockets on real nodes: everything is asked at once, and looked at row by row. */
describe.skipIf(why !== undefined)(`services with real sockets${why ? ` (${why})` : ""}`, () => {
  let lab: LiveLab;
  let ended: Map<LiveRow, End[]>;
  beforeAll(async () => {
    lab = await liveLab();
    ended = await endsOf(lab, Object.values(LIVE_ROWS).flat());
  });
  afterAll(() => lab?.close());

  describe.each(Object.entries(LIVE_ROWS))("%s", (_about, rows) => {
    it.each(rows.map((row) => [row.title, row] as const))("%s", (_title, row) => {
      expect(reported(lab, row, ended.get(row)!)).toBe(row.becomes);
    });
  });

  it("with bpfConnectTimeLoadBalancing: Disabled, a node's process is served by its packets, and by its socket again later", async () => {
    const atNode = UNHOOKED_PROCESSES_ASK.map((row): LiveRow => ({ ...row, from: "node-1" }));
    const report = async () => {
      const ends = await endsOf(lab, atNode);
      return atNode.map((row) => [row.title, reported(lab, row, ends.get(row)!)]);
    };
    await lab.translateAtSockets("Disabled");
    // Its backends see the node where a socket that was translated would be itself, or the service: the packets were.
    expect(await report()).toEqual(atNode.map(({ title, becomes }) => [title, becomes]));
    await lab.translateAtSockets("Enabled");
    expect(await report()).not.toEqual(atNode.map(({ title, becomes }) => [title, becomes]));
  });
});
