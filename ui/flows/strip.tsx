import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import UPlot from "uplot";
import type { PageRun } from "../../src/api/protocol/page-runs.ts";
import type { FlowTimeline } from "../api/flow.ts";
import { askFlows } from "../api/flows-api.ts";
import { api, query, runs, search, url } from "../page-state.ts";
import { type Palette, paletteOf } from "../palette.ts";
import { timeIn, withoutTime, withTime } from "../query/query-text.ts";
import { drawRuns, runsWithin } from "../runs/draw-runs.ts";
import { clockText, countText } from "./flow-text.ts";

const POINTS = 120;
const ASKED_EVERY_MS = 15_000;
const HEIGHT_PX = 74;
const HOUR_S = 3_600;
/** Between marks of the axis, in seconds. */
const MINUTES = [60, 120, 300, 600, 900];
/** A scale. */
const DENIED = "denied";
const PRESETS = ["5m", "15m", "1h"];

/** The last hour, denials in front. Dragging writes a time into the query. */
export function Strip() {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot>(null);
  const [timeline, setTimeline] = useState<FlowTimeline>();
  useSignalEffect(() => {
    const asked = api.value;
    const text = withoutTime(query.value);
    if (!asked) return undefined;
    const left = new AbortController();
    const askAgain = () =>
      askFlows<FlowTimeline>(asked, "timeline", { query: text, points: POINTS }, left.signal)
        .then(setTimeline)
        // The table says why nothing is answered.
        .catch(() => {});
    void askAgain();
    const timer = setInterval(askAgain, ASKED_EVERY_MS);
    return () => {
      left.abort();
      clearInterval(timer);
    };
  });
  const theme = url.value.theme;
  useEffect(() => {
    const element = place.current as HTMLDivElement;
    const made = new UPlot(optionsOf(element, paletteOf(element)), [[], [], []], element);
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
    };
  }, [theme]);
  const time = timeIn(query.value, Date.now());
  useEffect(() => {
    if (timeline) plot.current?.setData(columnsOf(timeline));
    if (plot.current) showTime(plot.current, time);
  }, [timeline, theme, time.since, time.until]);
  const begun = runs.value;
  useEffect(() => plot.current?.redraw(false), [begun]);
  const hasTime = time.since !== undefined || time.until !== undefined;
  return (
    <section class="strip" aria-label="The last hour">
      <div class="plot" role="img" aria-label={summaryOf(timeline) + runsText(begun ?? [])} ref={place} />
      <div class="times">
        {PRESETS.map((preset) => (
          <button type="button" key={preset} onClick={() => search(`${withoutTime(query.value)} since:${preset}`)}>
            {preset}
          </button>
        ))}
        {hasTime && (
          <button type="button" onClick={() => search(withoutTime(query.value))}>
            any time
          </button>
        )}
      </div>
    </section>
  );
}

function optionsOf(element: HTMLElement, palette: Palette): UPlot.Options {
  const { dim, allowed, allowedFill, denied, deniedFill } = palette;
  const line = { points: { show: false }, width: 1 };
  return {
    ...{ width: element.clientWidth, height: HEIGHT_PX, padding: [6, 18, 0, 18] as UPlot.Padding },
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false } },
    scales: {
      // An hour, also while less of it is known.
      x: { range: (_plot, _first, last) => hourUntil(last ?? Date.now() / 1_000) },
      y: { range: upTo },
      // Of its own: few denials are seen beside many connections.
      [DENIED]: { range: upTo },
    },
    axes: [
      {
        stroke: dim,
        grid: { show: false },
        ticks: { show: false },
        size: 22,
        space: 80,
        incrs: MINUTES,
        values: (_plot, at) => at.map(minuteText),
      },
      { show: false },
    ],
    series: [
      {},
      { ...line, stroke: allowed, fill: allowedFill },
      { ...line, width: 2, stroke: denied, fill: deniedFill, scale: DENIED },
    ],
    hooks: { setSelect: [writeTime], draw: [(plot) => drawRuns(plot, runs.peek() ?? [], palette)] },
  };
}

function upTo(_plot: UPlot, _least: number | null, most: number | null): [number, number] {
  return [0, (most || 1) * 1.15];
}

function writeTime(plot: UPlot): void {
  const { left, width } = plot.select;
  // Shown by showTime, and by a click.
  if (width < 2 || !plot.cursor.event) return;
  const [since, until] = [left, left + width].map((at) => Math.round(plot.posToVal(at, "x")) * 1_000);
  search(withTime(query.value, since as number, until as number));
}

function showTime(plot: UPlot, { since, until }: { since?: number; until?: number }): void {
  const [first, last] = [plot.scales["x"]?.min, plot.scales["x"]?.max];
  const none = { left: 0, top: 0, width: 0, height: 0 };
  if (first === undefined || last === undefined || first === null || last === null) return;
  if (since === undefined && until === undefined) {
    plot.setSelect(none, false);
    return;
  }
  const within = (time: number) => Math.min(Math.max(time / 1_000, first), last);
  const left = plot.valToPos(since === undefined ? first : within(since), "x");
  const right = plot.valToPos(until === undefined ? last : within(until), "x");
  plot.setSelect({ left, top: 0, width: Math.max(right - left, 0), height: plot.over.clientHeight }, false);
}

/** Connections that began, and packets that were denied: in a denial none begins. */
function columnsOf({ points }: FlowTimeline): UPlot.AlignedData {
  return [
    points.map(({ since }) => since / 1_000),
    points.map(({ allowed }) => allowed.connections),
    points.map(({ denied }) => denied.packets),
  ];
}

function summaryOf(timeline: FlowTimeline | undefined): string {
  if (!timeline) return "The last hour";
  const { points } = timeline;
  const connections = points.reduce((sum, { allowed }) => sum + allowed.connections, 0);
  const packets = points.reduce((sum, { denied }) => sum + denied.packets, 0);
  const worst = points.reduce<FlowTimeline["points"][number] | undefined>(
    (most, point) => (point.denied.packets > (most?.denied.packets ?? 0) ? point : most),
    undefined,
  );
  const when = worst ? `, most at ${clockText(worst.since)}` : "";
  return `The last hour: ${countText(connections, "connection")} allowed, ${countText(packets, "packet")} denied${when}`;
}

/** What the marks say. */
function runsText(begun: readonly PageRun[]): string {
  const now = Date.now() / 1_000;
  const shown = runsWithin(begun, now - HOUR_S, now);
  return shown.map(({ title, startedAt }) => `. At ${clockText(Date.parse(startedAt))}: ${title}`).join("");
}

function hourUntil(last: number): [number, number] {
  return [last - HOUR_S, last];
}

function minuteText(seconds: number): string {
  return clockText(seconds * 1_000).slice(0, 5);
}
