import { isRefusal } from "./api/flows-api.ts";
import { flowsBetween } from "./api/flows-between.ts";
import { followFlows } from "./api/follow-flows.ts";
import { compareFlows, countsOf, mostOfEach } from "./worker/compare-flows.ts";
import { LiveFlows, MOST_FLOWS } from "./worker/live-flows.ts";
import { MapDrawing } from "./worker/map-drawing.ts";
import type { AskedComparison, PageMessage, WorkerMessage } from "./worker/messages.ts";

/** Flows live here: the page asks for the rows that it shows, and waits for no sort and no layout. */

/** What changed is shown as often; what the user asked for, at once. */
const SHOWN_EVERY_MS = 250;
const MAP_EVERY_MS = 1_000;
/** Of pairs that are new, gone, the same, or have another verdict. */
const MOST_OF_EACH = 200;

let live = new LiveFlows("");
let following = new AbortController();
let look = { from: 0, to: 0 };
let order: Extract<PageMessage, { ask: "sort" }> = { ask: "sort", sort: "when", isDescending: true };
let isMapShown = false;
let lit = "";
let comparing = new AbortController();
let shownTimer: ReturnType<typeof setTimeout> | undefined;
let mapTimer: ReturnType<typeof setTimeout> | undefined;
const drawing = new MapDrawing();

const answer = (message: WorkerMessage) => postMessage(message);

addEventListener("message", ({ data }: MessageEvent<PageMessage>) => {
  switch (data.ask) {
    case "follow":
      return follow(data);
    case "sort":
      order = data;
      live.sort(data.sort, data.isDescending);
      return showNow();
    case "look":
      look = { from: data.from, to: data.to };
      return showNow();
    case "pause":
      live.pause(data.isPaused);
      return changed(true);
    case "step": {
      const stepped = live.step(data.from, data.by);
      return stepped && answer({ answer: "stepped", ...stepped });
    }
    case "seen-denials":
      live.seeDenials();
      return showNow();
    case "map":
      isMapShown = data.isShown;
      return isMapShown ? showMap() : undefined;
    case "light":
      lit = data.decidedBy;
      return showMap();
    case "compare":
      comparing.abort();
      comparing = new AbortController();
      return data.compared && void compare(data.compared, comparing.signal);
  }
});

async function compare({ api, query, times }: AskedComparison, signal: AbortSignal): Promise<void> {
  const { since, before, after, until } = times;
  try {
    const [first, second] = await Promise.all([
      flowsBetween(api, query, since, before, signal),
      flowsBetween(api, query, after, until, signal),
    ]);
    if (signal.aborted) return;
    const pairs = compareFlows(first.flows, second.flows);
    const isCut = first.isCut || second.isCut;
    answer({
      answer: "compared",
      comparison: { times, counts: countsOf(pairs), pairs: mostOfEach(pairs, MOST_OF_EACH), isCut },
    });
  } catch (error) {
    if (signal.aborted) return;
    const refusal = isRefusal(error) ? error : { status: 0, reason: "Unreadable", message: String(error) };
    answer({ answer: "compared", comparison: { times, refusal, counts: countsOf([]), pairs: [], isCut: false } });
  }
}

function follow({ api, query }: Extract<PageMessage, { ask: "follow" }>): void {
  following.abort();
  following = new AbortController();
  live = new LiveFlows(query);
  live.sort(order.sort, order.isDescending);
  void keepUp(live, followFlows(api, { query, most: MOST_FLOWS, signal: following.signal }), following.signal);
  changed(true);
}

async function keepUp(flows: LiveFlows, events: ReturnType<typeof followFlows>, signal: AbortSignal): Promise<void> {
  for await (const event of events) {
    if (signal.aborted) return;
    flows.follow(event, Date.now());
    // A page of a list is worth a look; of a watch, one for many events.
    changed(event.is !== "change");
  }
}

function changed(isAtOnce: boolean): void {
  if (isAtOnce) showNow();
  else shownTimer ??= setTimeout(showNow, SHOWN_EVERY_MS);
  if (isMapShown) mapTimer ??= setTimeout(showMap, isAtOnce ? 0 : MAP_EVERY_MS);
}

function showNow(): void {
  clearTimeout(shownTimer);
  shownTimer = undefined;
  answer({ answer: "flows", flows: live.shown(look.from, look.to) });
}

function showMap(): void {
  clearTimeout(mapTimer);
  mapTimer = undefined;
  if (isMapShown) answer({ answer: "map", picture: drawing.draw(live.columns, lit) });
}
