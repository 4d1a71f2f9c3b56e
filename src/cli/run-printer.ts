import type { TrafficRow } from "../api/protocol/traffic-report.ts";
import type { StepEvent } from "../procedures/run/step-event.ts";
import { trafficText } from "./print-traffic.ts";
import { openProgress, type Progress } from "./progress.ts";
import type { Session } from "./session.ts";

type End = Extract<StepEvent, { event: "end" }>;

/** What a run came to, for the last line. */
export interface RunReport {
  end: End | undefined;
  /** What steps said they measured. */
  measured: string[];
  /** What traffic suffered, where it was measured. */
  traffic: readonly TrafficRow[] | undefined;
}

/** Shows a run as it goes: live lines on a terminal, plain lines elsewhere, the events themselves as JSON lines. Throws what stops the run. */
export async function showRun(session: Session, events: AsyncIterable<StepEvent>): Promise<RunReport> {
  const report: RunReport = { end: undefined, measured: [], traffic: undefined };
  const show = session.flags.output === "json" ? jsonLines(session) : asProgress(session, await openProgress(session));
  try {
    for await (const event of events) {
      if (event.event === "say" && event.kind === "measured") report.measured.push(event.text);
      if (event.event === "traffic") report.traffic = event.figures;
      if (event.event === "end") report.end = event;
      show(event);
    }
  } catch (error) {
    if (report.traffic && session.flags.output !== "json") session.err(trafficText(report.traffic));
    throw error;
  }
  return report;
}

function jsonLines({ out, flags }: Session): (event: StepEvent) => void {
  return (event) => {
    if (!flags.quiet) out(`${JSON.stringify(event)}\n`);
  };
}

function asProgress(session: Session, progress: Progress): (event: StepEvent) => void {
  let running = "";
  const line = (number: number, of: number, text: string) =>
    `${String(number).padStart(String(of).length)}/${of}  ${text}`;
  return (event) => {
    switch (event.event) {
      case "run":
        return progress.report({ event: "note", text: `${verbOf(event)} ${event.title} (run ${event.run})` });
      case "note":
        return progress.report(event);
      case "traffic":
        return;
      case "say":
        if (event.kind !== "waiting") return progress.report({ event: "note", text: `      ${event.text}` });
        return progress.report({ event: "step", id: event.id, state: "running", text: `${running}: ${event.text}` });
      case "step": {
        const text = line(event.number, event.of, `${event.title}${suffix(event)}`);
        if (event.state === "running" || event.state === "undoing") running = text;
        return progress.report({ event: "step", id: event.id, state: progressState(event.state), text });
      }
      case "end":
        if (event.outcome === "stopped" && !session.flags.quiet) session.err(`${stopped(event)}\n`);
        return;
    }
  };
}

function verbOf({ heading, resumed }: Extract<StepEvent, { event: "run" }>): string {
  if (heading === "back") return resumed ? "going on taking back:" : "taking back:";
  return resumed ? "going on with:" : "running:";
}

function progressState(state: Extract<StepEvent, { event: "step" }>["state"]): "running" | "done" | "failed" {
  if (state === "failed") return "failed";
  return state === "done" || state === "skipped" || state === "undone" ? "done" : "running";
}

function suffix({ state, ms, where }: Extract<StepEvent, { event: "step" }>): string {
  if (state === "skipped") return ": already so";
  if (state === "undoing") return ": taking it back";
  if (state === "undone") return ": taken back";
  return `  ${where}${ms === undefined ? "" : `  ${seconds(ms)}`}`;
}

function stopped({ run, done, skipped, pending }: End): string {
  return `run ${run} stands with ${done + skipped} steps done and ${pending} left: vendorctl resume goes on, vendorctl rollback takes it back`;
}

export function seconds(ms: number): string {
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)}s` : `${Math.floor(ms / 60_000)}m${Math.round((ms % 60_000) / 1000)}s`;
}

const WORDS = {
  done: "done",
  "rolled-back": "taken back",
  stopped: "stopped",
  running: "running",
  aborted: "given up",
};

/** What was done, what it measured, and the next command. */
export function printReport(session: Session, { end, measured, traffic }: RunReport, next: readonly string[]): void {
  if (!end) return;
  const { run, outcome, done, skipped, undone, pending, ms } = end;
  if (session.flags.output === "json") {
    session.out(
      `${JSON.stringify({ event: "result", run, outcome, done, skipped, undone, pending, ms, measured, ...(traffic && { traffic }), next })}\n`,
    );
    return;
  }
  const counts = [
    ...(done > 0 ? [`${done} done`] : []),
    ...(skipped > 0 ? [`${skipped} already so`] : []),
    ...(undone > 0 ? [`${undone} taken back`] : []),
    ...(pending > 0 ? [`${pending} left`] : []),
  ];
  const lines = [
    `${WORDS[outcome]} in ${seconds(ms)}: ${counts.join(", ") || "nothing to do"} (run ${run})`,
    ...measured.map((text) => `measured: ${text}`),
    ...next.map((command) => `next: ${command}`),
  ];
  if (traffic) session.out(trafficText(traffic));
  session.out(`${lines.join("\n")}\n`);
}
