import { batch, computed, effect, signal } from "@preact/signals";
import type { PageRun } from "../src/api/protocol/page-runs.ts";
import type { FlowTimeline } from "./api/flow.ts";
import { type ApiRefusal, type FlowsApi, isRefusal } from "./api/flows-api.ts";
import { timesAround } from "./compare/compared-times.ts";
import { type MapPicture, NO_PICTURE } from "./map/map-picture.ts";
import { withoutTime } from "./query/query-text.ts";
import { followRuns } from "./runs/follow-runs.ts";
import { stepped } from "./runs/run-text.ts";
import { openSession, type Session } from "./session/session.ts";
import { isStep, readHash, type UrlState, writeHash } from "./url-state.ts";
import type { ColumnSort } from "./worker/flow-columns.ts";
import type { Comparison, LiveTable, PageMessage, WorkerMessage } from "./worker/messages.ts";

/** What the page shows, and the few actions that change it. What a link holds is in `url`, all else is forgotten with the page. */

export const url = signal<UrlState>(readHash(location.hash));
export const session = signal<Session | undefined>(undefined);
/** Why there is no session yet; undefined while it is asked for. */
export const refusal = signal<ApiRefusal | undefined>(undefined);
/** In this variable alone, and in no storage. */
const token = signal("");
export const isPaused = signal(false);
export const isHelpOpen = signal(false);
export const isMapTable = signal(false);
/** What decided the flows that are lit up, as the table names it; empty: none are. */
export const lit = signal("");
/** How often the map was to be fitted into the window. */
export const fits = signal(0);
export const picture = signal<MapPicture>(NO_PICTURE);
/** Where the chosen flow is in the table, when it was reached by keys. */
export const steppedTo = signal(-1);

const NOTHING_SHOWN: LiveTable = {
  ...{ phase: "listing", query: "", total: 0, waiting: 0, denials: 0, newestDenial: "" },
  ...{ isCut: false, from: 0, rows: [] },
};
/** Policies that are written to be previewed. In no link: it would show what another user has written as one's own. */
export const draft = signal("");
/** What is in the panel is asked about as soon as it can be. */
export const isPreviewDue = signal(false);

export const shown = signal<LiveTable>(NOTHING_SHOWN);

/** Of the last hour, as the strip shows it; undefined until it is known. */
export const timeline = signal<FlowTimeline | undefined>(undefined);

/** Newest first; undefined until they are known. */
export const runs = signal<readonly PageRun[] | undefined>(undefined);
/** What is compared, and how often again. */
const MINUTE_MS = 60_000;
const askedAgain = signal(0);
export const comparison = signal<Comparison | undefined>(undefined);
/** Why runs cannot be shown, or not the newest of them. */
export const runsRefusal = signal<ApiRefusal | undefined>(undefined);
/** The one that the link names, or the newest. */
export const run = computed(() => runs.value?.find(({ id }) => id === url.value.run) ?? runs.value?.[0]);

/** Before and after the mark; undefined: too little is known. */
export const comparedTimes = computed(() => {
  const points = timeline.value?.points ?? [];
  // The last point is not complete: nodes are still sending it.
  const [first, last] = [points[0], points.at(-1)];
  const { mark, span } = url.value;
  if (mark === 0 || !first || !last) return undefined;
  return timesAround(mark, Number(span) * MINUTE_MS, { from: first.since, until: last.since });
});

export const screen = computed(() => url.value.screen);
export const query = computed(() => url.value.query);

/** Who asks, and where; undefined until that is known. */
export const api = computed<FlowsApi | undefined>(() => {
  const open = session.value;
  if (!open) return undefined;
  const namespace = url.value.namespace || (open.wholeCluster ? "" : open.namespace);
  return { origin: location.origin, namespace, token: token.value };
});

const worker = new Worker("page-worker.js");
const ask = (message: PageMessage) => worker.postMessage(message);

/** A link is a finding, and the back button finds the one before. */
export function go(change: Partial<UrlState>): void {
  const from = url.value;
  const to = { ...from, ...change };
  const hash = writeHash(to);
  if (isStep(from, to)) history.pushState(null, "", hash);
  else history.replaceState(null, "", hash);
  url.value = to;
}

export function search(text: string): void {
  go({ query: text.trim() });
}

export function choose(flow: string): void {
  go({ flow });
}

export function explain(flow: string): void {
  if (flow !== "") go({ flow, isExplained: true });
}

export function lightUp(decidedBy: string): void {
  lit.value = decidedBy;
  ask({ ask: "light", decidedBy });
}

export function previewText(text: string): void {
  draft.value = text;
  isPreviewDue.value = true;
  go({ panel: "preview", gone: "" });
}

/** What if it were gone? */
export function previewWithout(gone: string): void {
  draft.value = "";
  isPreviewDue.value = true;
  go({ panel: "preview", gone });
}

export function sortBy(sort: ColumnSort): void {
  const { sort: before, isDescending } = url.value;
  const isText = ["from", "to", "decided", "plane"].includes(sort);
  go({ sort, isDescending: sort === before ? !isDescending : !isText });
}

export function look(from: number, to: number): void {
  ask({ ask: "look", from, to });
}

export function step(by: number): void {
  ask({ ask: "step", from: url.value.flow, by });
}

export function compareAgain(): void {
  askedAgain.value++;
}

export function stepRun(by: number): void {
  const next = stepped(runs.value ?? [], run.value?.id ?? "", by);
  if (next) go({ run: next.id });
}

export function pause(): void {
  isPaused.value = !isPaused.value;
  ask({ ask: "pause", isPaused: isPaused.value });
}

/** Explains the newest denial, and all that came so far are seen. */
export function explainDenial(): void {
  const { newestDenial } = shown.value;
  ask({ ask: "seen-denials" });
  explain(newestDenial);
}

export async function signIn(given: string): Promise<void> {
  refusal.value = undefined;
  try {
    const opened = await openSession(given);
    if (opened.signIn && given === "") {
      refusal.value = { status: 401, reason: "Unauthorized", message: "" };
      return;
    }
    batch(() => {
      token.value = given;
      session.value = opened;
      document.title = `Flows · ${opened.cluster}`;
    });
  } catch (error) {
    const found = isRefusal(error) ? error : { status: 0, reason: "Unreadable", message: String(error) };
    // Before a token was given nothing is wrong.
    refusal.value = found.status === 401 && given === "" ? { ...found, message: "" } : found;
  }
}

/** Asks the worker for what the state says, whenever that changes. */
export function start(): void {
  worker.onmessage = ({ data }: MessageEvent<WorkerMessage>) => {
    switch (data.answer) {
      case "flows":
        shown.value = data.flows;
        // A token may have ended meanwhile.
        if (data.flows.refusal?.status === 401) [session.value, refusal.value] = [undefined, data.flows.refusal];
        return;
      case "stepped":
        go({ flow: data.id });
        steppedTo.value = data.position;
        return;
      case "map":
        picture.value = data.picture;
        return;
      case "compared":
        comparison.value = data.comparison;
    }
  };
  addEventListener("popstate", () => {
    url.value = readHash(location.hash);
  });
  addEventListener("hashchange", () => {
    url.value = readHash(location.hash);
  });
  const followed = computed(() => JSON.stringify([api.value, query.value]));
  effect(() => {
    const [asked, text] = JSON.parse(followed.value) as [FlowsApi | null, string];
    isPaused.value = false;
    if (asked) ask({ ask: "follow", api: asked, query: text });
  });
  effect(() => {
    const open = session.value;
    if (!open?.runs) return undefined;
    return followRuns(token.peek(), {
      answered: (answer) => {
        [runs.value, runsRefusal.value] = [answer.runs, undefined];
      },
      refused: (why) => {
        runsRefusal.value = why;
      },
    });
  });
  const order = computed(() => `${url.value.isDescending ? "-" : ""}${url.value.sort}`);
  effect(() => {
    const sort = order.value.replace(/^-/, "") as ColumnSort;
    ask({ ask: "sort", sort, isDescending: order.value.startsWith("-") });
  });
  const isMapShown = computed(() => screen.value === "map");
  effect(() => ask({ ask: "map", isShown: isMapShown.value }));
  // As time goes on there is more after the mark: compared again when it is asked for.
  const compared = computed(() => {
    const { mark, span } = url.value;
    if (screen.value !== "compare" || comparedTimes.value === undefined) return "";
    return JSON.stringify([api.value, withoutTime(query.value), mark, span, askedAgain.value]);
  });
  effect(() => {
    const [asked, text] = compared.value === "" ? [] : (JSON.parse(compared.value) as [FlowsApi | null, string]);
    comparison.value = undefined;
    const times = comparedTimes.peek();
    ask({ ask: "compare", compared: asked && times ? { api: asked, query: text ?? "", times } : undefined });
  });
  const theme = computed(() => url.value.theme);
  effect(() => {
    document.documentElement.dataset["theme"] = theme.value;
  });
  void signIn("");
}
