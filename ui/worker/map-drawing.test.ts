import fc from "fast-check";
import { expect, it } from "vitest";
import { flowKey, NOTHING, outside, workload } from "../../src/flows/flow.fixture.ts";
import type { Flow } from "../api/flow.ts";
import { FlowColumns } from "./flow-columns.ts";
import { MapDrawing } from "./map-drawing.ts";
import { cellOf, Places } from "./places.ts";

function columnsOf(pairs: [Flow["from"], Flow["to"], Flow["verdict"]?][]): FlowColumns {
  const columns = new FlowColumns();
  pairs.forEach(([from, to, verdict = "Allow"], at) => {
    const addresses = { sourceAddresses: [], destinationAddresses: [] };
    const key = flowKey({ from, to, verdict });
    columns.put({
      ...key,
      ...NOTHING,
      ...addresses,
      bytes: 100,
      metadata: { name: `${at}` },
      lastSeen: "2026-01-31T12:00:00Z",
    });
  });
  return columns;
}

const [web, cart, db] = [workload("shop", "web"), workload("shop", "cart"), workload("pay", "db")];

it("lights up the pairs of what a rule decided, and of nothing else", () => {
  const columns = columnsOf([
    [web, db, "Deny"],
    [web, cart],
  ]);
  const decidedBy = columns.pair(0).decidedBy;
  const litOf = (lit: string) => new MapDrawing().draw(columns, lit).edges.filter(({ isLit }) => isLit).length;
  expect([litOf(""), litOf("no such rule"), litOf(decidedBy)]).toEqual([0, 0, 2]);
  const both = columnsOf([[web, db, "Deny"]]);
  expect(new MapDrawing().draw(both, decidedBy).lines).toMatchObject([{ isLit: true }]);
});

it("every place has a cell of its own, and a square grows only at two of its edges", () => {
  const cells = Array.from({ length: 400 }, (_, place) => cellOf(place));
  expect(new Set(cells.map(({ column, row }) => `${column},${row}`)).size).toBe(400);
  cells.forEach(({ column, row }, place) => {
    expect(Math.max(column, row)).toBe(Math.floor(Math.sqrt(place)));
  });
});

it("a name keeps its place whatever comes and goes, and no two have the same", () => {
  const names = fc.array(fc.constantFrom(..."abcdefghij"), { minLength: 1 });
  fc.assert(
    fc.property(fc.array(names, { maxLength: 12 }), (pictures) => {
      const places = new Places();
      const known = new Map<string, number>();
      for (const picture of pictures) {
        places.take(picture);
        for (const name of picture) {
          expect(places.of(name)).toBe(known.get(name) ?? places.of(name));
          known.set(name, places.of(name));
        }
      }
      expect(new Set(known.values()).size).toBe(known.size);
    }),
  );
});

it("there is one line for a pair, whoever began, and denied ones come last", () => {
  const { nodes, edges, lines, boxes } = new MapDrawing().draw(
    columnsOf([
      [web, db, "Deny"],
      [db, web],
      [web, cart],
      [web, cart],
    ]),
  );
  expect(boxes.map(({ namespace, workloads }) => [namespace, workloads])).toEqual([
    ["pay", 1],
    ["shop", 2],
  ]);
  const shown = edges.map(({ a, b, forth, back, denied }) => [nodes[a]?.name, nodes[b]?.name, forth, back, denied]);
  expect(shown).toEqual([
    ["cart", "web", 0, 2, 0],
    ["db", "web", 1, 1, 1],
  ]);
  expect(lines).toMatchObject([{ a: 0, b: 1, denied: 1 }]);
});

it("what stays is where it was when a namespace and a workload come", () => {
  const drawing = new MapDrawing();
  const before = drawing.draw(columnsOf([[web, db]]));
  const after = drawing.draw(
    columnsOf([
      [web, db],
      [outside, web],
    ]),
  );
  for (const { name, x, y } of before.nodes) {
    const same = after.nodes.find((node) => node.name === name);
    expect([name, same?.x, same?.y]).toEqual([name, x, y]);
  }
});

it("every workload is within the box of its namespace, and no two are at one place", () => {
  const pairs = Array.from({ length: 60 }, (_, at): [Flow["from"], Flow["to"]] => [
    workload(`ns-${at % 7}`, `w-${at}`),
    workload(`ns-${at % 3}`, `v-${at % 11}`),
  ]);
  const { nodes, boxes } = new MapDrawing().draw(columnsOf(pairs));
  for (const { x, y, box } of nodes) {
    const { x: left, y: top, width, height } = boxes[box]!;
    expect(x > left && x < left + width && y > top && y < top + height).toBe(true);
  }
  expect(new Set(nodes.map(({ x, y }) => `${x},${y}`)).size).toBe(nodes.length);
});
