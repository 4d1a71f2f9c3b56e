import { expect, it } from "vitest";
import { parseQuery } from "../../src/flows/query/parse-query.ts";
import { clipped, fitted, inWindow, isCollapsed, onMap, zoomed } from "./camera.ts";
import type { MapPicture } from "./map-picture.ts";
import { pickedAt, pickedQuery } from "./picked.ts";

const SIZE = { width: 1_000, height: 600 };
const edge = { a: 0, b: 1, forth: 1, back: 1, bytes: 1, denied: 0, isLit: false };
const picture: MapPicture = {
  boxes: [
    { namespace: "shop", x: 0, y: 0, width: 200, height: 200, workloads: 1 },
    { namespace: "pay", x: 400, y: 0, width: 200, height: 200, workloads: 1 },
  ],
  nodes: [
    { namespace: "shop", name: "web", x: 100, y: 100, box: 0, radius: 8 },
    { namespace: "pay", name: "db", x: 500, y: 100, box: 1, radius: 8 },
  ],
  edges: [edge],
  lines: [edge],
};
const camera = fitted(picture, SIZE);
const queryAt = (x: number, y: number, view = camera) => {
  const picked = pickedAt(picture, view, SIZE, inWindow(view, { x, y }));
  const query = picked && pickedQuery(picked);
  if (query) parseQuery(query);
  return query;
};

it("all of the map fits into the window", () => {
  for (const { x, y, width, height } of picture.boxes) {
    const [first, last] = [inWindow(camera, { x, y }), inWindow(camera, { x: x + width, y: y + height })];
    expect(first.x >= 0 && first.y >= 0 && last.x <= SIZE.width && last.y <= SIZE.height).toBe(true);
  }
});

it("what is under the pointer stays there when it zooms", () => {
  const at = { x: 300, y: 200 };
  const [before, after] = [onMap(camera, at), onMap(zoomed(camera, at, 1.7), at)];
  expect(after.x).toBeCloseTo(before.x);
  expect(after.y).toBeCloseTo(before.y);
});

it("a workload, a pair and a namespace write a query that can be read", () => {
  expect(queryAt(100, 100)).toBe("either:shop/web");
  expect(queryAt(300, 101)).toBe("(from:shop/web to:pay/db) or (from:pay/db to:shop/web)");
  expect(queryAt(20, 180)).toBe("namespace:shop");
  expect(queryAt(300, 190)).toBeUndefined();
});

it("namespaces take the place of workloads when the map is far, or has too many of them", () => {
  const far = zoomed(camera, { x: 0, y: 0 }, 0.2);
  expect(queryAt(100, 100, far)).toBe("namespace:shop");
  expect(queryAt(300, 100, far)).toBe("namespace:shop namespace:pay");
  const full = { boxes: picture.boxes.map((box) => ({ ...box, workloads: 300 })) };
  expect([isCollapsed(full, camera, SIZE), isCollapsed(picture, camera, SIZE)]).toEqual([true, false]);
});

it("a line is cut at the edges of the window, and one outside is not drawn", () => {
  const window = { width: 100, height: 100 };
  expect(clipped({ x: -50, y: 50 }, { x: 150, y: 50 }, window)).toEqual([
    { x: 0, y: 50 },
    { x: 100, y: 50 },
  ]);
  expect(clipped({ x: 10, y: 10 }, { x: 10, y: 90 }, window)).toEqual([
    { x: 10, y: 10 },
    { x: 10, y: 90 },
  ]);
  expect(clipped({ x: -10, y: 0 }, { x: -10, y: 90 }, window)).toBeUndefined();
  expect(clipped({ x: -50, y: 20 }, { x: 20, y: -50 }, window)).toBeUndefined();
});
