import { endTerm } from "../query/query-text.ts";
import { type Camera, isCollapsed, onMap, type Point, type Size } from "./camera.ts";
import type { MapBox, MapEdge, MapNode, MapPicture } from "./map-picture.ts";

/** What of the map is at a point of the window. */
export type Picked =
  | { is: "node"; node: MapNode }
  | { is: "edge"; edge: MapEdge; ends: readonly [MapNode, MapNode] }
  | { is: "box"; box: MapBox }
  | { is: "line"; ends: readonly [MapBox, MapBox] };

/** In pixels of the window. */
const NEAR = 6;

export function pickedAt(picture: MapPicture, camera: Camera, size: Size, at: Point): Picked | undefined {
  const point = onMap(camera, at);
  const near = NEAR / camera.scale;
  if (isCollapsed(picture, camera, size)) {
    const box = picture.boxes.find((one) => isInside(one, point));
    if (box) return { is: "box", box };
    const line = drawnLines(picture).findLast(({ a, b }) => {
      const [from, to] = [picture.boxes[a] as MapBox, picture.boxes[b] as MapBox];
      return distance(point, middleOf(from), middleOf(to)) < near;
    });
    return line && { is: "line", ends: [picture.boxes[line.a] as MapBox, picture.boxes[line.b] as MapBox] };
  }
  const node = picture.nodes.find(({ x, y, radius }) => Math.hypot(point.x - x, point.y - y) < radius + near / 2);
  if (node) return { is: "node", node };
  const edge = picture.edges.findLast(
    ({ a, b }) => a !== b && distance(point, picture.nodes[a] as Point, picture.nodes[b] as Point) < near,
  );
  if (edge) return { is: "edge", edge, ends: [picture.nodes[edge.a] as MapNode, picture.nodes[edge.b] as MapNode] };
  const box = picture.boxes.find((one) => isInside(one, point));
  return box && { is: "box", box };
}

/** A query for what was picked; empty: there is none for it. */
export function pickedQuery(picked: Picked): string {
  switch (picked.is) {
    case "node":
      return endTerm("either", picked.node);
    case "box":
      return namespaceTerm(picked.box);
    case "line":
      return picked.ends.map(namespaceTerm).filter(Boolean).join(" ");
    case "edge":
      return edgeQuery(picked.edge, picked.ends);
  }
}

/** Both directions only where there are flows in both. */
export function edgeQuery({ forth, back }: MapEdge, [a, b]: readonly [MapNode, MapNode]): string {
  const there = `${endTerm("from", a)} ${endTerm("to", b)}`;
  const here = `${endTerm("from", b)} ${endTerm("to", a)}`;
  if (forth > 0 && back > 0) return `(${there}) or (${here})`;
  return forth > 0 ? there : here;
}

/** As many lines between namespaces as can be told apart: denials, then those with most bytes. */
const MOST_LINES = 60;

export function drawnLines({ lines }: Pick<MapPicture, "lines">): readonly MapEdge[] {
  return lines.slice(-MOST_LINES);
}

export function middleOf({ x, y, width, height }: MapBox): Point {
  return { x: x + width / 2, y: y + height / 2 };
}

function namespaceTerm({ namespace }: MapBox): string {
  return namespace === "" ? "" : endTerm("either", { namespace, name: "" });
}

function isInside({ x, y, width, height }: MapBox, point: Point): boolean {
  return point.x >= x && point.x <= x + width && point.y >= y && point.y <= y + height;
}

/** From a point to a straight line between two others. */
function distance(point: Point, from: Point, to: Point): number {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = dx * dx + dy * dy;
  const along = length === 0 ? 0 : ((point.x - from.x) * dx + (point.y - from.y) * dy) / length;
  const at = Math.min(Math.max(along, 0), 1);
  return Math.hypot(point.x - from.x - at * dx, point.y - from.y - at * dy);
}
