import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type End, type LiveLab, liveLab, type Question, whyNoLiveLab } from "./live-lab.ts";
import { LIVE_ROWS, type LiveRow } from "./live-rows.ts";

const why = whyNoLiveLab();
const ALL = Object.values(LIVE_ROWS).flat();
/** Who says nothing has had this long to say something. Answers come, or the story fails. */
const SILENCE_MS = 1_500;

/** What the packets of test/ebpf do in the programs, done with sockets on real nodes: everything is asked at once, and looked at row by row. */
describe.skipIf(why !== undefined)(`services with real sockets${why ? ` (${why})` : ""}`, () => {
  let lab: LiveLab;
  const ended = new Map<LiveRow, End[]>();
  beforeAll(async () => {
    lab = await liveLab();
    const questions = ALL.map(({ title: _title, becomes, ...question }): Question => {
      return becomes === "silence" ? { ...question, patienceMs: SILENCE_MS } : question;
    });
    const ends = await lab.ask(questions);
    for (const [at, row] of ALL.entries()) ended.set(row, ends[at]!);
  }, 120_000);
  afterAll(() => lab?.close(), 60_000);

  describe.each(Object.entries(LIVE_ROWS))("%s", (_about, rows) => {
    it.each(rows.map((row) => [row.title, row] as const))("%s", (_title, row) => {
      const ends = ended.get(row)!;
      if (row.becomes === "silence") return expect(ends).toEqual([{ end: "silence" }]);
      if (row.becomes === "refused") return expect(ends).toEqual([{ end: "ECONNREFUSED" }]);
      const { by, sees } = row.becomes;
      const answers = ends.flatMap((end) => ("by" in end ? [end] : []));
      expect(ends).toEqual(answers);
      const names = [...new Set(answers.map((answer) => answer.by))].sort();
      if (by[0] === "the same") expect(names).toHaveLength(1);
      else expect(names).toEqual([...by].sort());
      const addresses = sees === "service" ? [row.host] : lab.addressesOf(sees);
      for (const { client } of answers) expect(addresses).toContain(client);
    });
  });

  it("at least fifty flows were asked", () => {
    expect(ended.size).toBeGreaterThanOrEqual(50);
  });
});
