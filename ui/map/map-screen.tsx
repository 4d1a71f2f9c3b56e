import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { countText } from "../flows/flow-text.ts";
import { StatusLine } from "../flows/flows-screen.tsx";
import { fits, isMapTable, picture, search, url } from "../page-state.ts";
import { type Palette, paletteOf } from "../palette.ts";
import { type Camera, fitted, type Point, type Size, zoomed } from "./camera.ts";
import { drawMap } from "./draw-map.ts";
import type { MapPicture } from "./map-picture.ts";
import { MapTable } from "./map-table.tsx";
import { pickedAt, pickedQuery } from "./picked.ts";

/** Who speaks to whom: a picture, or the same as a table. */
export function MapScreen() {
  const isTable = isMapTable.value;
  const { nodes, boxes, edges } = picture.value;
  const sum = `${countText(nodes.length, "workload")} in ${countText(boxes.length, "namespace")}, ${countText(edges.length, "pair")}, ${countText(edges.filter(({ denied }) => denied > 0).length, "pair")} with denials`;
  return (
    <main class="map">
      <StatusLine />
      {isTable ? <MapTable picture={picture.value} /> : <MapCanvas label={`Map: ${sum}`} />}
      <div class="legend">
        <button
          type="button"
          aria-pressed={isTable}
          onClick={() => {
            isMapTable.value = !isTable;
          }}
        >
          Table
        </button>
        {!isTable && (
          <button
            type="button"
            onClick={() => {
              fits.value++;
            }}
          >
            Fit
          </button>
        )}
        <span class="dim">{sum}. Dashed and red: denied. Choosing one writes the query.</span>
      </div>
    </main>
  );
}

interface View {
  camera: Camera | undefined;
  /** The user has moved it: what comes does not move it again. */
  isMoved: boolean;
  palette: Palette | undefined;
  frame: number;
}

const PAN_PX = 60;
const ZOOM = 1.25;
const WHEEL = 400;
/** A pointer that moves less is a click. */
const CLICK_PX = 4;

function MapCanvas({ label }: { label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const view = useRef<View>({ camera: undefined, isMoved: false, palette: undefined, frame: 0 });
  const draw = () => {
    cancelAnimationFrame(view.current.frame);
    view.current.frame = requestAnimationFrame(
      () => canvas.current && frame(canvas.current, view.current, picture.peek()),
    );
  };
  const move = (next: (camera: Camera) => Camera) => {
    const { camera } = view.current;
    if (!camera) return;
    view.current.camera = next(camera);
    view.current.isMoved = true;
    draw();
  };
  const refit = () => {
    view.current.camera = undefined;
    view.current.isMoved = false;
    draw();
  };
  useSignalEffect(() => {
    if (picture.value && !view.current.isMoved) view.current.camera = undefined;
    draw();
  });
  useSignalEffect(() => {
    if (fits.value > 0) refit();
  });
  const theme = url.value.theme;
  useEffect(() => {
    view.current.palette = undefined;
    draw();
  }, [theme]);
  useEffect(() => {
    const element = canvas.current as HTMLCanvasElement;
    const resized = new ResizeObserver(draw);
    resized.observe(element);
    const schemes = matchMedia("(prefers-color-scheme: dark)");
    const recolour = () => {
      view.current.palette = undefined;
      draw();
    };
    schemes.addEventListener("change", recolour);
    return () => {
      resized.disconnect();
      schemes.removeEventListener("change", recolour);
      cancelAnimationFrame(view.current.frame);
    };
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    const [dx, dy] = PANS[event.key] ?? [0, 0];
    const element = canvas.current as HTMLCanvasElement;
    const middle = { x: element.clientWidth / 2, y: element.clientHeight / 2 };
    if (dx !== 0 || dy !== 0) move((camera) => ({ ...camera, x: camera.x + dx, y: camera.y + dy }));
    else if (event.key === "+" || event.key === "=") move((camera) => zoomed(camera, middle, ZOOM));
    else if (event.key === "-") move((camera) => zoomed(camera, middle, 1 / ZOOM));
    else return;
    event.preventDefault();
  };
  return (
    <canvas
      ref={canvas}
      role="img"
      aria-label={`${label}. Press t for the same as a table.`}
      tabIndex={0}
      onWheel={(event) => {
        event.preventDefault();
        move((camera) => zoomed(camera, pointOf(event), Math.exp(-event.deltaY / WHEEL)));
      }}
      onPointerDown={(event) =>
        startDrag(event, move, (at) => canvas.current && pick(at, canvas.current, view.current))
      }
      onKeyDown={onKeyDown}
    />
  );
}

const PANS: Readonly<Record<string, readonly [number, number]>> = {
  ...{ ArrowLeft: [PAN_PX, 0], ArrowRight: [-PAN_PX, 0], ArrowUp: [0, PAN_PX], ArrowDown: [0, -PAN_PX] },
};

function frame(canvas: HTMLCanvasElement, view: View, shown: MapPicture): void {
  const size: Size = { width: canvas.clientWidth, height: canvas.clientHeight };
  const ratio = devicePixelRatio;
  const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d");
  if (!context) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  view.palette ??= paletteOf(canvas.parentElement as HTMLElement);
  if (shown.boxes.length > 0) view.camera ??= fitted(shown, size);
  drawMap(context, shown, view.camera ?? fitted(shown, size), size, view.palette);
}

function pick(at: Point, canvas: HTMLCanvasElement, { camera }: View): void {
  if (!camera) return;
  const size = { width: canvas.clientWidth, height: canvas.clientHeight };
  const picked = pickedAt(picture.peek(), camera, size, at);
  const query = picked && pickedQuery(picked);
  if (query) search(query);
}

/** Drags the map, or clicks where the pointer stays. */
function startDrag(
  start: PointerEvent & { currentTarget: HTMLCanvasElement },
  move: (next: (camera: Camera) => Camera) => void,
  click: (at: Point) => void,
): void {
  const canvas = start.currentTarget;
  const first = pointOf(start);
  let [last, isDrag] = [first, false];
  canvas.setPointerCapture(start.pointerId);
  const onMove = (event: PointerEvent) => {
    const at = pointOf(event);
    isDrag ||= Math.hypot(at.x - first.x, at.y - first.y) > CLICK_PX;
    const [dx, dy] = [at.x - last.x, at.y - last.y];
    last = at;
    if (isDrag) move((camera) => ({ ...camera, x: camera.x + dx, y: camera.y + dy }));
  };
  const onUp = () => {
    canvas.removeEventListener("pointermove", onMove);
    canvas.removeEventListener("pointerup", onUp);
    canvas.removeEventListener("pointercancel", onUp);
    if (!isDrag) click(first);
  };
  canvas.addEventListener("pointermove", onMove);
  canvas.addEventListener("pointerup", onUp);
  canvas.addEventListener("pointercancel", onUp);
}

function pointOf({ offsetX, offsetY }: MouseEvent): Point {
  return { x: offsetX, y: offsetY };
}
