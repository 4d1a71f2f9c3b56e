import type UPlot from "uplot";
import type { PageRun } from "../../src/api/protocol/page-runs.ts";
import type { Palette } from "../palette.ts";

const DASH_PX = 4;
const GAP_PX = 4;
const FONT_PX = 10;
const LONGEST = 48;
/** Below the buttons for times, which are at the right end. */
const TITLE_TOP_PX = 18;

/** A dashed line where each run began, so that what changed in the flows is seen beside it; its title where there is room. */
export function drawRuns(plot: UPlot, runs: readonly PageRun[], { accent }: Palette): void {
  const [first, last] = [plot.scales["x"]?.min, plot.scales["x"]?.max];
  if (first === undefined || last === undefined || first === null || last === null) return;
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio || 1;
  ctx.save();
  ctx.strokeStyle = accent;
  ctx.fillStyle = accent;
  ctx.lineWidth = scale;
  ctx.setLineDash([DASH_PX * scale, DASH_PX * scale]);
  ctx.font = `${FONT_PX * scale}px system-ui, sans-serif`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  const top = bbox.top + TITLE_TOP_PX * scale;
  let free = bbox.left + bbox.width;
  for (const { startedAt, title } of runsWithin(runs, first, last)) {
    const x = Math.round(plot.valToPos(Date.parse(startedAt) / 1_000, "x", true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const text = title.length > LONGEST ? `${title.slice(0, LONGEST - 1)}…` : title;
    const width = ctx.measureText(text).width + GAP_PX * scale;
    // To the right of its line, or at the end of the hour to the left.
    if (x + width <= free) ctx.fillText(text, x + GAP_PX * scale, top);
    else if (free === bbox.left + bbox.width && x - width >= bbox.left) {
      ctx.fillText(text, x - width, top);
      free = x - width;
      continue;
    }
    free = x;
  }
  ctx.restore();
}

/** Of the time between, in seconds; newest first, as they come. */
export function runsWithin(runs: readonly PageRun[], first: number, last: number): PageRun[] {
  return runs.filter(({ startedAt, title }) => {
    const at = Date.parse(startedAt) / 1_000;
    return title !== "" && at >= first && at <= last;
  });
}
