import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import UPlot from "uplot";
import type { PageRun } from "../../src/api/protocol/page-runs.ts";
import type { FlowTimeline } from "../api/flow.ts";
import { askFlows } from "../api/flows-api.ts";
import { api, comparedTimes, go, query, runs, search, timeline, url } from "../page-state.ts";
import { type Palette, paletteOf } from "../palette.ts";
import { timeIn, withoutTime, withTime } from "../query/query-text.ts";
import { drawRuns, runsWithin } from "../runs/draw-runs.ts";
import { clockText, countText } from "./flow-text.ts";
import { movedRange, type StripRange, type StripSpan } from "./strip-range.ts";

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
  const known = timeline.value;
  const [range, setRange] = useState<StripRange>();
  useSignalEffect(() => {
    const asked = api.value;
    const text = withoutTime(query.value);
    if (!asked) return undefined;
    const left = new AbortController();
    const askAgain = () =>
      askFlows<FlowTimeline>(asked, "timeline", { query: text, points: POINTS }, left.signal)
        .then((answer) => {
          timeline.value = answer;
        })
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
  const times = url.value.screen === "compare" ? comparedTimes.value : undefined;
  const asked = timeIn(query.value, Date.now());
  const time = range ?? times ?? asked;
  useEffect(() => {
    if (known) plot.current?.setData(columnsOf(known));
    if (plot.current) showTime(plot.current, time);
  }, [known, theme, time.since, time.until]);
  const begun = runs.value;
  const { mark } = url.value;
  useEffect(() => plot.current?.redraw(false), [begun, mark]);
  const hasTime = asked.since !== undefined || asked.until !== undefined;
  return (
    <section class="strip" aria-label="The last hour">
      <div class="plot" role="img" aria-label={summaryOf(known) + runsText(begun ?? [])} ref={place} />
      <RangeKeys known={known} range={range} choose={setRange} />
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

interface RangeKeysProps {
  known: FlowTimeline | undefined;
  range: StripRange | undefined;
  choose(range: StripRange | undefined): void;
}

/** The strip by keys: what dragging does, and a time to compare at. */
function RangeKeys({ known, range, choose }: RangeKeysProps) {
  const span = spanOf(known);
  if (!known || !span) return null;
  const { since } = range ?? { since: span.until };
  const text = range ? rangeText(known, range) : "no time is chosen";
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moved = movedRange(range, event, span);
    if (moved) choose(moved);
    else if (range && (event.key === "c" || (event.key === "Enter" && url.value.screen === "compare")))
      go({ screen: "compare", mark: range.since });
    else if (range && event.key === "Enter") search(withTime(query.value, range.since, range.until));
    else if (!(range && event.key === "Escape")) return;
    if (!moved) choose(undefined);
    event.preventDefault();
  };
  return (
    <div
      class="range-keys"
      role="slider"
      tabIndex={0}
      aria-label="Time in the strip"
      aria-valuemin={span.since}
      aria-valuemax={span.until}
      aria-valuenow={since}
      aria-valuetext={text}
      onKeyDown={onKeyDown}
      onBlur={() => choose(undefined)}
    >
      <span class="hint">
        {range && `${text}. `}
        <kbd>←</kbd> <kbd>→</kbd> move, with <kbd>shift</kbd> widen, <kbd>Enter</kbd> writes it, <kbd>c</kbd> compares
        before and after
      </span>
    </div>
  );
}

function spanOf(known: FlowTimeline | undefined): StripSpan | undefined {
  const points = known?.points ?? [];
  const [first, last] = [points[0], points.at(-1)];
  return first && last && { since: first.since, until: last.until, stepMs: first.until - first.since };
}

function rangeText({ points }: FlowTimeline, { since, until }: StripRange): string {
  const within = points.filter((point) => point.since < until && point.until > since);
  const connections = within.reduce((sum, { allowed }) => sum + allowed.connections, 0);
  const packets = within.reduce((sum, { denied }) => sum + denied.packets, 0);
  return `${clockText(since)} to ${clockText(until)}: ${countText(connections, "connection")} allowed, ${countText(packets, "packet")} denied`;
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
    hooks: {
      setSelect: [writeTime],
      draw: [(plot) => drawRuns(plot, runs.peek() ?? [], palette), (plot) => drawMark(plot, palette)],
    },
  };
}

/** What flows are compared before and after. */
function drawMark(plot: UPlot, { ink }: Palette): void {
  const { mark, screen } = url.peek();
  const [first, last] = [plot.scales["x"]?.min, plot.scales["x"]?.max];
  if (screen !== "compare" || mark === 0 || first == null || last == null) return;
  const { ctx, bbox } = plot;
  const x = Math.round(plot.valToPos(mark / 1_000, "x", true));
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  ctx.fillStyle = ink;
  ctx.fillRect(x, bbox.top, 2 * (devicePixelRatio || 1), bbox.height);
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

function summaryOf(known: FlowTimeline | undefined): string {
  if (!known) return "The last hour";
  const { points } = known;
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
