import { PROPOSAL_KINDS, type ProposalKind } from "../src/api/protocol/flow-proposal.ts";
import { COLUMN_SORTS, type ColumnSort } from "./worker/flow-columns.ts";

export const SCREENS = ["flows", "map", "policies", "compare", "runs"] as const;
export type Screen = (typeof SCREENS)[number];

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

export const RULE_FILTERS = ["all", "never", "denying"] as const;
export type RuleFilter = (typeof RULE_FILTERS)[number];

/** Minutes before and after a mark. */
export const SPANS = ["15", "5", "30"] as const;
export type Span = (typeof SPANS)[number];

/** Which pairs a comparison shows. */
export const DIFFERENCES = ["all", "changed", "new", "gone", "same"] as const;
export type DifferenceFilter = (typeof DIFFERENCES)[number];

/** Beside a screen, over what is explained. */
export const PANELS = ["none", "propose", "preview"] as const;
export type Panel = (typeof PANELS)[number];

/** All that a link holds. The time that is looked at is in the query. */
export interface UrlState {
  screen: Screen;
  query: string;
  /** Empty: the whole cluster, or the reader's own. */
  namespace: string;
  sort: ColumnSort;
  isDescending: boolean;
  /** Id of the flow that is chosen; empty: none. */
  flow: string;
  /** The chosen flow is explained. */
  isExplained: boolean;
  rules: RuleFilter;
  /** Id of the run that is chosen; empty: the newest. */
  run: string;
  panel: Panel;
  /** What proposed policies are written as, and of what. */
  api: ProposalKind;
  egress: boolean;
  addresses: boolean;
  /** A policy whose deletion is previewed, as KIND/NAMESPACE/NAME; empty: none. */
  gone: string;
  /** A preview asks about the flows of the query alone. */
  isNarrow: boolean;
  /** What flows are compared before and after: milliseconds since 1970; 0: nothing is chosen. */
  mark: number;
  span: Span;
  differences: DifferenceFilter;
  theme: Theme;
}

const FIRST_URL_STATE: UrlState = {
  ...{ screen: "flows", query: "", namespace: "", sort: "when", isDescending: true },
  ...{ flow: "", isExplained: false, rules: "all", run: "", theme: "auto" },
  ...{ panel: "none", api: "kubernetes", egress: false, addresses: false, gone: "", isNarrow: false },
  ...{ mark: 0, span: SPANS[0], differences: DIFFERENCES[0] },
};

/** Links are written by users too: what is none of the choices is the first of them. */
export function readHash(hash: string): UrlState {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (name: string) => given.get(name) ?? "";
  const sort = COLUMN_SORTS.find((column) => column === text("sort").replace(/^-/, ""));
  const flow = text("flow");
  return {
    ...{ screen: oneOf(SCREENS, text("screen")), query: text("query"), namespace: text("namespace"), flow },
    ...{ sort: sort ?? COLUMN_SORTS[0], isDescending: sort === undefined || text("sort").startsWith("-") },
    ...{ isExplained: flow !== "" && given.has("why") },
    ...{ rules: oneOf(RULE_FILTERS, text("rules")), run: text("run"), theme: oneOf(THEMES, text("theme")) },
    ...{ panel: oneOf(PANELS, text("panel")), api: oneOf(PROPOSAL_KINDS, text("api")), gone: text("gone") },
    ...{ egress: given.has("egress"), addresses: given.has("addresses"), isNarrow: given.has("narrow") },
    ...{ mark: timeIn(text("mark")), span: oneOf(SPANS, text("span")) },
    differences: oneOf(DIFFERENCES, text("differences")),
  };
}

/** What is as it is at first is left out. */
export function writeHash(state: UrlState): string {
  const first = FIRST_URL_STATE;
  const isSorted = state.sort !== first.sort || state.isDescending !== first.isDescending;
  const entries: [string, string][] = [
    ["screen", state.screen === first.screen ? "" : state.screen],
    ["query", state.query],
    ["namespace", state.namespace],
    ["sort", isSorted ? `${state.isDescending ? "-" : ""}${state.sort}` : ""],
    ["flow", state.flow],
    ["why", state.flow !== "" && state.isExplained ? "1" : ""],
    ["rules", state.rules === first.rules ? "" : state.rules],
    ["run", state.run],
    ["panel", state.panel === first.panel ? "" : state.panel],
    ["api", state.api === first.api ? "" : state.api],
    ["egress", state.egress ? "1" : ""],
    ["addresses", state.addresses ? "1" : ""],
    ["gone", state.gone],
    ["narrow", state.isNarrow ? "1" : ""],
    ["mark", state.mark === 0 ? "" : String(state.mark)],
    ["span", state.span === first.span ? "" : state.span],
    ["differences", state.differences === first.differences ? "" : state.differences],
    ["theme", state.theme === first.theme ? "" : state.theme],
  ];
  return `#${new URLSearchParams(entries.filter(([, value]) => value !== ""))}`;
}

/** Whether going from one to the other is a step that the browser's back button takes again. */
export function isStep(from: UrlState, to: UrlState): boolean {
  return (["screen", "query", "namespace", "isExplained", "panel", "mark"] as const).some(
    (name) => from[name] !== to[name],
  );
}

/** The last millisecond that a date can be. */
const LAST_TIME = 8.64e15;

function timeIn(given: string): number {
  return /^\d+$/.test(given) && Number(given) <= LAST_TIME ? Number(given) : 0;
}

function oneOf<T extends string>(choices: readonly T[], given: string): T {
  return choices.find((choice) => choice === given) ?? (choices[0] as T);
}
