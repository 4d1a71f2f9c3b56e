import type { MapBox, MapEdge, MapNode, MapPicture } from "../map/map-picture.ts";
import type { FlowColumns } from "./flow-columns.ts";
import { cellOf, Places } from "./places.ts";

/** In units of the map: a node with its name below it. */
const SLOT = { width: 92, height: 58 };
const PADDING = { side: 16, top: 34, bottom: 14 };
const GAP = 56;
/** Sides of boxes in nodes; a box grows seldom, and then by more than a node needs. */
const SIDES = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
const RADIUS = { least: 5, most: 15 };

/** Lays out the map. A namespace keeps its place on the grid and a workload its place in the box, whatever flows come and go. */
export class MapDrawing {
  readonly #boxes = new Places();
  readonly #nodes = new Map<string, Places>();

  /** `lit`: what decided the flows that are lit up; empty: none are. */
  draw(columns: FlowColumns, lit = ""): MapPicture {
    const pairs = pairsOf(columns, lit);
    const ends = new Set(pairs.flatMap(({ from, to }) => [from, to]));
    const named = [...ends].map((number) => ({ number, ...columns.end(number) }));
    named.sort((a, b) => order(a.namespace, b.namespace) || order(a.name, b.name));
    const byNamespace = new Map<string, typeof named>();
    for (const end of named) byNamespace.set(end.namespace, [...(byNamespace.get(end.namespace) ?? []), end]);
    this.#place(byNamespace);
    const boxes = this.#layOut(byNamespace);
    const bytes = bytesOf(pairs);
    const indexOf = new Map<number, number>();
    const nodes = [...byNamespace].flatMap(([namespace, members], box) =>
      members.map(({ number, name }): MapNode => {
        const { column, row } = cellOf((this.#nodes.get(namespace) as Places).of(name));
        const { x, y } = boxes[box] as MapBox;
        return {
          ...{ namespace, name, box, radius: radiusOf(bytes.get(number) ?? 0) },
          x: x + PADDING.side + (column + 0.5) * SLOT.width,
          y: y + PADDING.top + (row + 0.4) * SLOT.height,
        };
      }),
    );
    named.forEach(({ number }, index) => {
      indexOf.set(number, index);
    });
    const edges = edgesOf(pairs, (number) => indexOf.get(number) as number);
    const lines = edgesOf(pairs, (number) => (nodes[indexOf.get(number) as number] as MapNode).box);
    return { boxes, nodes, edges, lines: lines.filter(({ a, b }) => a !== b) };
  }

  #place(byNamespace: Map<string, { name: string }[]>): void {
    this.#boxes.take(byNamespace.keys());
    for (const [namespace, members] of byNamespace) {
      const places = this.#nodes.get(namespace) ?? new Places();
      this.#nodes.set(namespace, places);
      places.take(members.map(({ name }) => name));
    }
  }

  /** All cells of the grid are as large as the largest box needs. */
  #layOut(byNamespace: Map<string, { name: string }[]>): MapBox[] {
    const sides = [...byNamespace].map(([namespace, members]) => {
      const cells = members.map(({ name }) => cellOf((this.#nodes.get(namespace) as Places).of(name)));
      return sideFor(Math.max(...cells.map(({ column, row }) => Math.max(column, row))) + 1);
    });
    const side = Math.max(1, ...sides);
    const sizeOf = (slots: number) => ({
      width: 2 * PADDING.side + slots * SLOT.width,
      height: PADDING.top + PADDING.bottom + slots * SLOT.height,
    });
    const cell = sizeOf(side);
    const boxes = [...byNamespace].map(([namespace, members], index): MapBox => {
      const { column, row } = cellOf(this.#boxes.of(namespace));
      const at = { x: column * (cell.width + GAP), y: row * (cell.height + GAP) };
      return { namespace, ...at, ...sizeOf(sides[index] as number), workloads: members.length };
    });
    return boxes;
  }
}

interface Pair {
  from: number;
  to: number;
  flows: number;
  denied: number;
  bytes: number;
  isLit: boolean;
}

function pairsOf(columns: FlowColumns, lit: string): Pair[] {
  const pairs = new Map<number, Pair>();
  for (let row = 0; row < columns.size; row++) {
    const { from, to, isDenied, decidedBy, bytes } = columns.pair(row);
    const key = from * 2 ** 26 + to;
    let pair = pairs.get(key);
    if (!pair) {
      pair = { from, to, flows: 0, denied: 0, bytes: 0, isLit: false };
      pairs.set(key, pair);
    }
    pair.flows++;
    pair.bytes += bytes;
    if (isDenied) pair.denied++;
    if (lit !== "" && decidedBy === lit) pair.isLit = true;
  }
  return [...pairs.values()];
}

function edgesOf(pairs: readonly Pair[], indexOf: (number: number) => number): MapEdge[] {
  const edges = new Map<number, MapEdge>();
  for (const { from, to, flows, denied, bytes, isLit } of pairs) {
    const [first, second] = [indexOf(from), indexOf(to)];
    const [a, b] = first <= second ? [first, second] : [second, first];
    const key = a * 2 ** 26 + b;
    const edge = edges.get(key) ?? { a, b, forth: 0, back: 0, bytes: 0, denied: 0, isLit: false };
    edges.set(key, edge);
    if (a === first) edge.forth += flows;
    else edge.back += flows;
    edge.bytes += bytes;
    edge.denied += denied;
    edge.isLit ||= isLit;
  }
  return [...edges.values()].sort((x, y) => Number(x.denied > 0) - Number(y.denied > 0) || x.bytes - y.bytes);
}

function bytesOf(pairs: readonly Pair[]): Map<number, number> {
  const bytes = new Map<number, number>();
  for (const pair of pairs) {
    for (const end of [pair.from, pair.to]) bytes.set(end, (bytes.get(end) ?? 0) + pair.bytes);
  }
  return bytes;
}

function radiusOf(bytes: number): number {
  return Math.min(RADIUS.least + Math.log10(1 + bytes), RADIUS.most);
}

function sideFor(cells: number): number {
  return SIDES.find((side) => side >= cells) ?? cells;
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
