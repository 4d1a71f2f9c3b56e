import type { Palette } from "../palette.ts";
import { type Camera, clipped, inWindow, isCollapsed, isSeen, type Point, type Size } from "./camera.ts";
import type { MapBox, MapEdge, MapNode, MapPicture } from "./map-picture.ts";
import { drawnLines, middleOf } from "./picked.ts";

const CORNER = 14;
/** Lengths of dashes and gaps, in pixels. */
const DENIED_DASH = [6, 4];
/** Names of workloads are drawn from this scale on. */
const NAMED = 0.6;
const BACKGROUND_ALPHA = 0.55;
const MOST_WIDTH = 4;
/** Of what a rule decided, while the rule is looked at: wider than all others. */
const LIT_WIDTH = 6;

/** One frame. Lines of one kind are one path: that is what makes thousands of them cheap. */
export function drawMap(
  context: CanvasRenderingContext2D,
  picture: MapPicture,
  camera: Camera,
  size: Size,
  palette: Palette,
): void {
  context.clearRect(0, 0, size.width, size.height);
  context.textBaseline = "middle";
  const draw = isCollapsed(picture, camera, size) ? drawCollapsed : drawWhole;
  draw(context, picture, camera, size, palette);
}

function drawWhole(
  context: CanvasRenderingContext2D,
  { boxes, nodes, edges }: MapPicture,
  camera: Camera,
  size: Size,
  palette: Palette,
): void {
  const seen = boxes.map((box) => isSeen(box, camera, size));
  boxes.forEach((box, at) => {
    if (seen[at]) drawBox(context, box, camera, palette);
  });
  const isNear = ({ a, b }: MapEdge) => seen[(nodes[a] as MapNode).box] || seen[(nodes[b] as MapNode).box];
  const shown = edges.filter((edge) => edge.a !== edge.b && isNear(edge));
  drawEdges(context, shown, (index) => inWindow(camera, nodes[index] as MapNode), size, palette);
  context.fillStyle = palette.node;
  context.beginPath();
  for (const node of nodes) {
    if (!seen[node.box]) continue;
    const { x, y } = inWindow(camera, node);
    context.moveTo(x + node.radius * camera.scale, y);
    context.arc(x, y, node.radius * camera.scale, 0, 2 * Math.PI);
  }
  context.fill();
  if (camera.scale < NAMED) return;
  context.fillStyle = palette.ink;
  context.textAlign = "center";
  context.font = `${Math.min(11 * camera.scale, 13)}px system-ui, sans-serif`;
  for (const node of nodes) {
    if (!seen[node.box]) continue;
    const { x, y } = inWindow(camera, { x: node.x, y: node.y + node.radius + 9 });
    context.fillText(shortened(node.name || "*"), x, y);
  }
}

function drawCollapsed(
  context: CanvasRenderingContext2D,
  picture: MapPicture,
  camera: Camera,
  size: Size,
  palette: Palette,
): void {
  const { boxes } = picture;
  drawEdges(context, drawnLines(picture), (index) => inWindow(camera, middleOf(boxes[index] as MapBox)), size, palette);
  context.textAlign = "center";
  for (const box of boxes) {
    if (!isSeen(box, camera, size)) continue;
    const middle = inWindow(camera, middleOf(box));
    // Large enough to be read, whatever the scale.
    const width = Math.max(box.width * camera.scale, 74);
    const height = Math.max(Math.min(box.height * camera.scale, width * 0.6), 34);
    context.fillStyle = palette.card;
    context.strokeStyle = palette.node;
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(middle.x - width / 2, middle.y - height / 2, width, height, 8);
    context.fill();
    context.stroke();
    context.fillStyle = palette.ink;
    context.font = "600 12px system-ui, sans-serif";
    context.fillText(shortened(boxTitle(box)), middle.x, middle.y - 6);
    context.fillStyle = palette.dim;
    context.font = "10px system-ui, sans-serif";
    context.fillText(`${box.workloads} workloads`, middle.x, middle.y + 8);
  }
}

function boxTitle({ namespace }: Pick<MapBox, "namespace">): string {
  return namespace || "no namespace";
}

function drawBox(context: CanvasRenderingContext2D, box: MapBox, camera: Camera, palette: Palette): void {
  const { x, y } = inWindow(camera, box);
  const { scale } = camera;
  context.fillStyle = palette.box;
  context.beginPath();
  context.roundRect(x, y, box.width * scale, box.height * scale, CORNER * scale);
  context.fill();
  context.textAlign = "left";
  context.fillStyle = palette.dim;
  context.font = `600 ${Math.max(13 * scale, 9)}px system-ui, sans-serif`;
  context.fillText(boxTitle(box), x + 14 * scale, y + 18 * scale);
}

/** Denied ones last, dashed; thicker for more bytes, in a few steps so that each step is one path. */
function drawEdges(
  context: CanvasRenderingContext2D,
  edges: readonly MapEdge[],
  place: (index: number) => Point,
  size: Size,
  palette: Palette,
): void {
  const allowed = edges.filter(({ denied }) => denied === 0);
  context.strokeStyle = palette.edge;
  context.globalAlpha = BACKGROUND_ALPHA;
  for (let width = 1; width <= MOST_WIDTH; width++)
    stroke(
      context,
      allowed.filter((edge) => widthOf(edge) === width),
      place,
      width,
      size,
    );
  context.globalAlpha = 1;
  context.strokeStyle = palette.denied;
  context.setLineDash(DENIED_DASH);
  stroke(
    context,
    edges.filter(({ denied }) => denied > 0),
    place,
    1.6,
    size,
  );
  context.setLineDash([]);
  context.strokeStyle = palette.accent;
  stroke(
    context,
    edges.filter(({ isLit }) => isLit),
    place,
    LIT_WIDTH,
    size,
  );
}

function stroke(
  context: CanvasRenderingContext2D,
  edges: readonly MapEdge[],
  place: (index: number) => Point,
  width: number,
  size: Size,
): void {
  if (edges.length === 0) return;
  context.lineWidth = width;
  context.beginPath();
  for (const { a, b } of edges) {
    const line = clipped(place(a), place(b), size);
    if (!line) continue;
    context.moveTo(line[0].x, line[0].y);
    context.lineTo(line[1].x, line[1].y);
  }
  context.stroke();
}

/** A kilobyte is the first step, and each thousandfold the next. */
function widthOf({ bytes }: MapEdge): number {
  return Math.min(Math.max(Math.floor(Math.log10(bytes + 1) / 3), 1), MOST_WIDTH);
}

function shortened(name: string): string {
  return name.length > 16 ? `${name.slice(0, 15)}…` : name;
}
