/** Plots as text of SVG; colours are the page's, by class. */
export interface Bars {
  title: string;
  unit: string;
  digits: number;
  groups: { label: string; bars: Bar[] }[];
  /** A line across all groups, with what it is. */
  limit?: { label: string; value: number };
}

export interface Bar {
  series: string;
  label: string;
  value: number;
  /** The best round. */
  best: number;
}

export interface Dots {
  title: string;
  unit: string;
  rows: { label: string; series: string; values: readonly number[]; marks: { label: string; value: number }[] }[];
}

const SIZE = { width: 440, height: 230, left: 52, right: 12, top: 34, bottom: 30 };

export function barPlot({ title, unit, digits, groups, limit }: Bars): string {
  const { width, height, left, right, top, bottom } = SIZE;
  const values = groups.flatMap(({ bars }) => bars.map(({ best, value }) => Math.max(best, value)));
  const ticks = ticksTo(Math.max(...values, limit?.value ?? 0));
  const y = (value: number) => height - bottom - (value / ticks.at(-1)!) * (height - top - bottom);
  const groupWidth = (width - left - right) / groups.length;
  const drawn = groups.flatMap(({ label, bars }, at) => {
    const barWidth = Math.min(34, (groupWidth - 18) / bars.length);
    const from = left + at * groupWidth + (groupWidth - barWidth * bars.length) / 2;
    return [
      text(left + (at + 0.5) * groupWidth, height - bottom + 18, label, "middle"),
      ...bars.map((bar, index) => drawBar(bar, from + index * barWidth, barWidth - 2, y, { unit, digits })),
    ];
  });
  const line = limit
    ? `<line class="limit" x1="${left}" x2="${width - right}" y1="${y(limit.value)}" y2="${y(limit.value)}"><title>${escaped(
        `${limit.label}: ${limit.value.toFixed(digits)} ${unit}`,
      )}</title></line>`
    : "";
  const grid = ticks.map(
    (tick) =>
      `<line class="grid" x1="${left}" x2="${width - right}" y1="${y(tick)}" y2="${y(tick)}"/>${text(left - 6, y(tick) + 4, short(tick), "end")}`,
  );
  return svg(`${title}, ${unit}`, height, [...grid, ...drawn, line].join(""));
}

function drawBar(
  { series, label, value, best }: Bar,
  x: number,
  width: number,
  y: (value: number) => number,
  { unit, digits }: { unit: string; digits: number },
): string {
  const told = `${label}: median ${value.toFixed(digits)}, best ${best.toFixed(digits)} ${unit}`;
  const middle = x + width / 2;
  return [
    `<g><title>${escaped(told)}</title>`,
    `<rect class="${series}" x="${x}" y="${y(value)}" width="${width}" height="${y(0) - y(value)}" rx="2"/>`,
    `<line class="best" x1="${x + 3}" x2="${x + width - 3}" y1="${y(best)}" y2="${y(best)}"/>`,
    `<text class="value" x="${middle}" y="${y(Math.max(value, best)) - 4}" text-anchor="middle">${short(value)}</text></g>`,
  ].join("");
}

/** Every value a dot, on a scale where each step is ten times. */
export function dotPlot({ title, unit, rows }: Dots): string {
  const { width, right, top } = SIZE;
  const left = 130;
  const rowHeight = 26;
  const height = top + rows.length * rowHeight + 26;
  const all = rows.flatMap(({ values }) => values);
  const low = Math.floor(Math.log10(Math.min(...all)));
  const high = Math.ceil(Math.log10(Math.max(...all)));
  const x = (value: number) => left + ((Math.log10(value) - low) / (high - low)) * (width - left - right);
  const bottom = top + rows.length * rowHeight;
  const grid = Array.from({ length: high - low + 1 }, (_, at) => {
    const value = 10 ** (low + at);
    return `<line class="grid" x1="${x(value)}" x2="${x(value)}" y1="${top - 4}" y2="${bottom}"/>${text(x(value), bottom + 16, short(value), "middle")}`;
  });
  const drawn = rows.map(({ label, series, values, marks }, at) => {
    const y = top + (at + 0.5) * rowHeight;
    const dots = values.map((value) => `<circle class="${series} dot" cx="${x(value)}" cy="${y}" r="3"/>`);
    const lines = marks.map(
      ({ label: name, value }) =>
        `<line class="best" x1="${x(value)}" x2="${x(value)}" y1="${y - 9}" y2="${y + 9}"><title>${escaped(`${label}, ${name}: ${value.toFixed(1)} ${unit}`)}</title></line>`,
    );
    return [text(left - 8, y + 4, label, "end"), ...dots, ...lines].join("");
  });
  return svg(`${title}, ${unit}`, height, [...grid, ...drawn].join(""));
}

export function escaped(value: string): string {
  return value.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]!);
}

function svg(title: string, height: number, inside: string): string {
  return `<svg viewBox="0 0 ${SIZE.width} ${height}" role="img" aria-label="${escaped(title)}"><text class="title" x="0" y="14">${escaped(title)}</text>${inside}</svg>`;
}

function text(x: number, y: number, value: string, anchor: "start" | "middle" | "end"): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}">${escaped(value)}</text>`;
}

/** From zero to at least the highest, in round steps. */
function ticksTo(highest: number): number[] {
  const rough = highest / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough)!;
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, at) => at * step);
}

function short(value: number): string {
  if (value >= 10_000) return `${(value / 1000).toFixed(1).replace(/\.0$/, "")}k`;
  if (value >= 100) return value.toFixed(0);
  return String(Number(value.toPrecision(3)));
}
