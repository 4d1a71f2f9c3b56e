import type { PageRun, PageStep, PageTraffic } from "../../src/api/protocol/page-runs.ts";
import { countText } from "../flows/flow-text.ts";

/** A shape for eyes, a word for everyone. */
interface Sign {
  sign: string;
  word: string;
}

const OUTCOMES: Readonly<Record<PageRun["outcome"], Sign>> = {
  running: { sign: "◐", word: "running" },
  stopped: { sign: "■", word: "stopped" },
  done: { sign: "✓", word: "done" },
  "rolled-back": { sign: "↩", word: "rolled back" },
  aborted: { sign: "✕", word: "abandoned" },
  unreadable: { sign: "?", word: "unreadable" },
};

export function outcomeOf({ outcome, isCutOff }: Pick<PageRun, "outcome" | "isCutOff">): Sign {
  return isCutOff ? { sign: "■", word: "interrupted" } : OUTCOMES[outcome];
}

const STATES: Readonly<Record<PageStep["state"], Sign>> = {
  pending: { sign: "○", word: "to do" },
  intended: { sign: "◐", word: "begun" },
  applied: { sign: "◐", word: "applied" },
  confirmed: { sign: "✓", word: "done" },
  skipped: { sign: "✓", word: "skipped" },
  undone: { sign: "↩", word: "undone" },
};

/** Of each step. A step that only waits writes nothing before its end: which one a run is at follows from the others. */
export function stepSigns({ outcome, isCutOff, heading, steps }: PageRun): Sign[] {
  const signs = steps.map(({ state }) => STATES[state]);
  if (outcome !== "running" || isCutOff) return signs;
  const isTouched = ({ state }: PageStep) => ["intended", "applied", "confirmed"].includes(state);
  const at =
    heading === "back"
      ? steps.findLastIndex(isTouched)
      : steps.findIndex(({ state }) => state !== "confirmed" && state !== "skipped");
  const now = heading === "back" ? { sign: "↩", word: "being undone" } : { sign: "◐", word: "under way" };
  return signs.map((sign, index) => (index === at ? now : sign));
}

/** `3 min 12 s`; below a minute with one digit of a second, below a second in milliseconds. */
export function durationText(ms: number): string {
  if (!Number.isFinite(ms)) return "";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

/** How long a run took, or takes so far. */
export function runMs({ outcome, isCutOff, startedAt, changedAt }: PageRun, now: number): number {
  const until = outcome === "running" && !isCutOff ? now : Date.parse(changedAt);
  return Math.max(0, until - Date.parse(startedAt));
}

/** What the run cost the traffic that was measured. */
export function trafficSentence({ rows, sum, ms }: PageTraffic): string {
  const silence = `the longest silence was ${durationText(sum.silenceMs)}`;
  const took = durationText(ms);
  if (rows.some(({ reached }) => !reached))
    return `Some paths were never answered, so nothing is known of them. Of the others: ${lossText(sum)}, ${silence}.`;
  if (sum.lost === 0 && sum.unanswered === 0) return `Nothing was lost in ${took}; ${silence}.`;
  return `In ${took}: ${lossText(sum)}, ${silence}.`;
}

function lossText({ opened, lost, sent, unanswered }: PageTraffic["sum"]): string {
  const connections = `${lost.toLocaleString("en")} of ${countText(opened, "connection")} lost`;
  return `${connections}, ${unanswered.toLocaleString("en")} of ${countText(sent, "datagram")} unanswered`;
}

/** The run so many places below the one of this id. */
export function stepped(runs: readonly PageRun[], id: string, by: number): PageRun | undefined {
  const at = Math.max(
    0,
    runs.findIndex((run) => run.id === id),
  );
  return runs[Math.min(Math.max(at + by, 0), runs.length - 1)];
}
