import { STYLE, table } from "../pods/page.ts";
import { escaped } from "../pods/plot.ts";
import { figuresOf, flamesOf } from "./figures.ts";
import { flameGraph } from "./flame-graph.ts";
import type { Profile } from "./measure.ts";

/** One file that needs nothing else. */
export function page(profile: Profile, machine: readonly string[], method: readonly string[]): string {
  const rows = figuresOf(profile).map(({ conversation, step, once, spread, repeated }) => [
    ...[conversation, step, `${once.toFixed(0)} (${spread.map((value) => value.toFixed(0)).join(" to ")})`],
    repeated ? `${repeated.quiet.toFixed(0)} (${repeated.median.toFixed(0)})` : "",
  ]);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Programs: where the time of a packet goes</title><style>${STYLE}</style></head><body>
<header><h1>Programs: where the time of a packet goes</h1><p>${escaped(machine.join("; "))}.</p></header>
<section><h2>A new connection</h2>${flameGraph(flamesOf(profile))}</section>
<section><h2>Packets</h2>${table(["Connection", "Packet", "Once, ns (rounds)", "Repeated, ns (median)"], rows)}</section>
<section><h2>Method</h2><ul>${method.map((line) => `<li>${escaped(line)}</li>`).join("")}</ul></section>
</body></html>
`;
}
