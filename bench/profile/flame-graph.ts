import { escaped } from "../pods/plot.ts";

export interface Flame {
  name: string;
  /** Nanoseconds, its parts included. */
  value: number;
  parts: readonly Flame[];
}

const [WIDTH, ROW, GAP, LETTER] = [960, 26, 1, 6.2];
const COLOURS = ["#d9822b", "#c9682a", "#e0a030", "#b8562f", "#d98f5c"];

/** A graph on its own: each row is what the one above consists of, as wide as it takes long. */
export function flameGraph(root: Flame): string {
  const rows = depthOf(root);
  const title = escaped(`${root.name}: ${root.value.toFixed(0)} ns`);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${rows * ROW}" role="img" aria-label="${title}" font-family="sans-serif" font-size="11">`,
    ...boxes(root, { x: 0, row: 0, index: 0, scale: WIDTH / root.value }),
    "</svg>\n",
  ].join("\n");
}

interface Place {
  x: number;
  row: number;
  /** Among its neighbours, which have other colours. */
  index: number;
  scale: number;
}

function boxes(flame: Flame, { x, row, index, scale }: Place): string[] {
  const width = flame.value * scale;
  const [label, y] = [`${flame.name}, ${flame.value.toFixed(0)} ns`, row * ROW];
  const room = Math.floor((width - 8) / LETTER);
  const shown = label.length <= room ? label : room > 3 ? `${label.slice(0, room - 1)}…` : "";
  let at = x;
  const parts = flame.parts.flatMap((part, place) => {
    const drawn = boxes(part, { x: at, row: row + 1, index: place, scale });
    at += part.value * scale;
    return drawn;
  });
  const colour = COLOURS[(row + index) % COLOURS.length];
  return [
    `<g><title>${escaped(label)}</title><rect x="${x.toFixed(1)}" y="${y}" width="${Math.max(0, width - GAP).toFixed(1)}" height="${ROW - GAP}" fill="${colour}"/>` +
      `<text x="${(x + 4).toFixed(1)}" y="${y + 17}" fill="#1c1c1a">${escaped(shown)}</text></g>`,
    ...parts,
  ];
}

function depthOf({ parts }: Flame): number {
  return 1 + Math.max(0, ...parts.map(depthOf));
}
