import type { DataplaneName } from "./bench-node.ts";
import { type Aim, aimsOf, countsOf, DATAPLANES, FIGURES, figureOf, find, REACTIONS, variantsOf } from "./figures.ts";
import { barPlot, dotPlot, escaped } from "./plot.ts";
import { percentile, type ReactionResult } from "./reaction.ts";
import type { Figure, TrafficResult } from "./traffic.ts";

export interface Report {
  traffic: readonly TrafficResult[];
  reactions: readonly ReactionResult[];
  /** The machine and the run, in lines a person reads. */
  machine: readonly string[];
  method: readonly string[];
}

const FILTERS: readonly DataplaneName[] = ["ebpf", "nft", "iptables"];
const VARIANTS = {
  applying: "8 policies of 5 rules select the pods; the last of the 40 rules matches",
  idle: "no policy selects the pods",
} as const;

/** One file that needs nothing else. */
export function page({ traffic, reactions, machine, method }: Report): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Pods: what the filter costs</title><style>${STYLE}</style></head><body>
<header><h1>Pods: what the filter costs</h1>
<p>Two pods of one node speak through it. Nothing filters them, or one of three does. ${escaped(machine.join("; "))}.</p></header>
<section><h2>Aims</h2>${aimTable(aimsOf(traffic))}</section>
${legend()}
${variantsOf(traffic)
  .map((variant) => variantSection(traffic, variant))
  .join("")}
<section><h2>From the API server to the packets</h2><p>The real agent and the real plugin. Every dot is one change; lines are p50 and p99.</p>
<div class="plots">${reactionPlots(reactions)}</div></section>
<section><h2>Numbers</h2>${trafficTable(traffic)}${reactionTable(reactions)}</section>
<section><h2>Method</h2><ul>${method.map((line) => `<li>${escaped(line)}</li>`).join("")}</ul></section>
</body></html>
`;
}

function legend(): string {
  const items = FILTERS.map((plane) => `<span><i class="${plane}"></i>${DATAPLANES[plane]}</span>`);
  return `<p class="legend">${items.join("")}<span><i class="plain"></i>${DATAPLANES.plain} (dashed)</span><span>bar: median of the rounds, line: best round</span></p>`;
}

function variantSection(traffic: readonly TrafficResult[], variant: keyof typeof VARIANTS): string {
  const plots = (Object.keys(FIGURES) as Figure[]).map((figure) => figurePlot(traffic, figure, variant));
  return `<section><h2>Policies ${variant}</h2><p>${VARIANTS[variant]}. Groups are numbers of policies in the cluster.</p><div class="plots">${plots.join("")}</div></section>`;
}

function figurePlot(traffic: readonly TrafficResult[], figure: Figure, variant: keyof typeof VARIANTS): string {
  const { name, unit, digits } = FIGURES[figure];
  const groups = countsOf(traffic).map((count) => ({
    label: `${count.toLocaleString("en")} policies`,
    bars: FILTERS.map((plane) => {
      const result = find(traffic, plane, count, variant)!;
      const [value, best] = [figureOf(result, figure), figureOf(result, figure, "best")];
      return { series: plane, label: DATAPLANES[plane], value, best };
    }),
  }));
  const limit = { label: DATAPLANES.plain, value: figureOf(find(traffic, "plain", 0, "idle")!, figure) };
  return barPlot({ title: name, unit, digits, groups, limit });
}

function reactionPlots(reactions: readonly ReactionResult[]): string {
  return (Object.keys(REACTIONS) as (keyof typeof REACTIONS)[])
    .map((what) =>
      dotPlot({
        title: REACTIONS[what],
        unit: "ms",
        rows: reactions.map((one) => ({
          label: `${DATAPLANES[one.plane]}, ${one.count.toLocaleString("en")}`,
          series: one.plane,
          values: one[what],
          marks: [0.5, 0.99].map((share) => ({ label: `p${share * 100}`, value: percentile(one[what], share) })),
        })),
      }),
    )
    .join("");
}

function aimTable(aims: readonly Aim[]): string {
  const rows = aims.map(({ name, least, median, best }) => {
    const state = median >= least ? "reached" : best >= least ? "in the best rounds" : "missed";
    return [name, `at least ${least}`, median.toFixed(2), best.toFixed(2), state];
  });
  return table(["Aim, the worst of all numbers of policies", "Aim", "By medians", "By best rounds", ""], rows);
}

function trafficTable(traffic: readonly TrafficResult[]): string {
  const figures = Object.keys(FIGURES) as Figure[];
  const head = [
    "Plane",
    "Policies",
    "",
    "Set up, ms",
    ...figures.map((one) => `${FIGURES[one].name}, ${FIGURES[one].unit}`),
  ];
  const rows = traffic.map((one) => [
    DATAPLANES[one.plane],
    one.plane === "plain" ? "" : one.policies.count.toLocaleString("en"),
    one.plane === "plain" ? "" : one.policies.variant,
    one.setUpMs.toFixed(0),
    ...figures.map((figure) => {
      const { digits } = FIGURES[figure];
      return `${figureOf(one, figure).toFixed(digits)} (${figureOf(one, figure, "best").toFixed(digits)})`;
    }),
  ]);
  return `<p>Median of the rounds (best round).</p>${table(head, rows)}`;
}

function reactionTable(reactions: readonly ReactionResult[]): string {
  const kinds = Object.keys(REACTIONS) as (keyof typeof REACTIONS)[];
  const rows = reactions.map((one) => [
    DATAPLANES[one.plane],
    one.count.toLocaleString("en"),
    ...kinds.map((what) => {
      const [p50, p99] = [0.5, 0.99].map((share) => percentile(one[what], share).toFixed(1));
      return `${p50} / ${p99} of ${one[what].length}`;
    }),
  ]);
  return `<p>Milliseconds, p50 / p99; with fewer than a hundred, p99 is the longest.</p>${table(["Plane", "Policies", ...kinds.map((what) => REACTIONS[what])], rows)}`;
}

export function table(head: readonly string[], rows: readonly string[][]): string {
  const cells = (tag: string, values: readonly string[]) =>
    `<tr>${values.map((value) => `<${tag}>${escaped(value)}</${tag}>`).join("")}</tr>`;
  return `<div class="wide"><table>${cells("th", head)}${rows.map((row) => cells("td", row)).join("")}</table></div>`;
}

export const STYLE = `
:root{color-scheme:light dark;--ink:#1c1c1a;--soft:#66655f;--ground:#fbfbf9;--line:#e2e1db;--plain:#77766f;--ebpf:#2a6fc9;--nft:#d1762a;--iptables:#3d8f68}
@media(prefers-color-scheme:dark){:root{--ink:#ecebe6;--soft:#a3a29a;--ground:#171716;--line:#363632;--plain:#9c9b93;--ebpf:#5b9bea;--nft:#e39552;--iptables:#62b48c}}
body{margin:0 auto;max-width:72rem;padding:2rem 1.25rem;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .25rem}p,li{color:var(--soft);max-width:52rem}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1.5rem}
svg{width:100%;height:auto;font-size:11px}svg text{fill:var(--soft)}svg .title{fill:var(--ink);font-size:13px;font-weight:600}svg .value{font-size:10px}
.grid{stroke:var(--line)}.limit{stroke:var(--plain);stroke-width:2;stroke-dasharray:5 4}.best{stroke:var(--ink);stroke-width:1.5}
.plain{fill:var(--plain);background:var(--plain)}.ebpf{fill:var(--ebpf);background:var(--ebpf)}.nft{fill:var(--nft);background:var(--nft)}.iptables{fill:var(--iptables);background:var(--iptables)}.dot{opacity:.45}
.legend{display:flex;flex-wrap:wrap;gap:1.25rem;margin-top:2rem}.legend i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;margin:.5rem 0 1rem}th,td{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line);white-space:nowrap}th{color:var(--soft);font-weight:500}
`;
