import type { MapBox, MapPicture } from "./map-picture.ts";

/** Which part of the map the window shows: a point of the map is at `x + scale * point` in it. */
export interface Camera {
  x: number;
  y: number;
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

export interface Point {
  x: number;
  y: number;
}

/** Below it names of workloads cannot be read. */
const FAR = 0.45;
/** More of them in the window are lines that nobody reads. */
const MOST_NODES = 400;
const MARGIN = 24;
const SCALES = { least: 0.02, most: 4, fitted: 1.4 };

/** All of the map, in the middle of the window. */
export function fitted({ boxes }: Pick<MapPicture, "boxes">, { width, height }: Size): Camera {
  if (boxes.length === 0) return { x: 0, y: 0, scale: 1 };
  const left = Math.min(...boxes.map(({ x }) => x));
  const top = Math.min(...boxes.map(({ y }) => y));
  const right = Math.max(...boxes.map((box) => box.x + box.width));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height));
  const scale = Math.min((width - 2 * MARGIN) / (right - left), (height - 2 * MARGIN) / (bottom - top), SCALES.fitted);
  const bounded = Math.max(scale, SCALES.least);
  return {
    x: (width - (right + left) * bounded) / 2,
    y: (height - (bottom + top) * bounded) / 2,
    scale: bounded,
  };
}

/** Nearer or farther, so that what is at a point of the window stays there. */
export function zoomed({ x, y, scale }: Camera, at: Point, factor: number): Camera {
  const next = Math.min(Math.max(scale * factor, SCALES.least), SCALES.most);
  const by = next / scale;
  return { x: at.x - (at.x - x) * by, y: at.y - (at.y - y) * by, scale: next };
}

export function inWindow({ x, y, scale }: Camera, point: Point): Point {
  return { x: x + point.x * scale, y: y + point.y * scale };
}

export function onMap({ x, y, scale }: Camera, point: Point): Point {
  return { x: (point.x - x) / scale, y: (point.y - y) / scale };
}

/** Whether namespaces are shown in place of their workloads. */
export function isCollapsed({ boxes }: Pick<MapPicture, "boxes">, camera: Camera, size: Size): boolean {
  if (camera.scale < FAR) return true;
  let nodes = 0;
  for (const box of boxes) if (isSeen(box, camera, size)) nodes += box.workloads;
  return nodes > MOST_NODES;
}

export function isSeen(box: MapBox, camera: Camera, { width, height }: Size): boolean {
  const { x, y } = inWindow(camera, box);
  return x < width && y < height && x + box.width * camera.scale > 0 && y + box.height * camera.scale > 0;
}

/** What of a line is in the window: dashes of what is outside cost as much as those that are seen. */
export function clipped(from: Point, to: Point, { width, height }: Size): readonly [Point, Point] | undefined {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  let [first, last] = [0, 1];
  for (const [step, room] of [
    [-dx, from.x],
    [dx, width - from.x],
    [-dy, from.y],
    [dy, height - from.y],
  ] as const) {
    if (step === 0 && room < 0) return undefined;
    if (step < 0) first = Math.max(first, room / step);
    if (step > 0) last = Math.min(last, room / step);
  }
  if (first > last) return undefined;
  const at = (part: number) => ({ x: from.x + part * dx, y: from.y + part * dy });
  return [at(first), at(last)];
}
