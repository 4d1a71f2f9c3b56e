import type { End, LiveLab } from "./live-lab.ts";
import type { LiveRow } from "./live-rows.ts";

/** Who says nothing has had this long to say something. Answers come, or the story fails. */
const SILENCE_MS = 1_500;
const REFUSED = "ECONNREFUSED";

/** Asks everything at once. */
export async function endsOf(lab: LiveLab, rows: readonly LiveRow[]): Promise<Map<LiveRow, End[]>> {
  const ends = await lab.request(
    rows.map((row) => (row.becomes === "silence" ? { ...row, patienceMs: SILENCE_MS } : row)),
  );
  return new Map(rows.map((row, at) => [row, ends[at]!]));
}

/** What became of it, in the words of the row; and, where somebody else was seen than the row says, whom. */
export function reported(lab: LiveLab, { becomes, sees, host }: LiveRow, ends: readonly End[]): string {
  const others = ends.flatMap((end) => ("end" in end ? [end.end === REFUSED ? "refused" : end.end] : []));
  const answers = ends.flatMap((end) => ("by" in end ? [end] : []));
  const order = becomes.split(", ");
  const names = [...new Set(answers.map(({ by }) => by))].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const addresses = sees === "service" ? [host] : lab.addressesOf(sees);
  const wrong = answers.filter(({ client }) => !addresses.includes(client)).map(({ client }) => `saw ${client}`);
  const who = becomes === "the same" && names.length === 1 ? ["the same"] : names;
  return [...who, ...others, ...wrong].join(", ");
}
