import type { TrafficRow } from "../../../api/protocol/traffic-report.ts";
import type { StepEvent } from "../../../procedures/run/step-event.ts";
import { wrapped } from "../../printer.ts";
import { openProgress, type Progress } from "../../progress.ts";
import type { Session } from "../../session.ts";
import { trafficText } from "../switch/traffic.print.ts";

type End = Extract<StepEvent, { event: "end" }>;

/** What a run came to, for the last line. */
export interface RunReport {
  end: End | undefined;
  /** Figures that steps measured. */
  measured: string[];
  /** What traffic lost, if it was measured. */
  traffic: readonly TrafficRow[] | undefined;
}

/** Shows a run as it goes: live lines on a terminal, plain lines elsewhere, the events themselves as JSON lines. Throws what stops the run. */
export async function showRun(session: Session, events: AsyncIterable<StepEvent>): Promise<RunReport> {
  const report: RunReport = { end: undefined, measured: [], traffic: undefined };
  const progress = await openProgress(session);
  const show = session.flags.output === "json" ? jsonLines(session) : asProgress(progress);
  try {
    for await (const event of events) {
      if (event.event === "say" && event.kind === "measured") report.measured.push(event.text);
      if (event.event === "traffic") report.traffic = event.figures;
      if (event.event === "end") report.end = event;
      show(event);
    }
  } catch (error) {
    if (session.flags.output !== "json") for (const text of report.measured) session.err(`measured: ${text}\n`);
    if (report.traffic && session.flags.output !== "json")
      session.err(await trafficText(report.traffic, session.config.columns));
    throw error;
  } finally {
    progress.close();
  }
  return report;
}

function jsonLines({ out, flags }: Session): (event: StepEvent) => void {
  return (event) => {
    if (!flags.quiet) out(`${JSON.stringify(event)}\n`);
  };
}

function asProgress(progress: Progress): (event: StepEvent) => void {
  let running = "";
  const line = (number: number, of: number, text: string) =>
    `${String(number).padStart(String(of).length)}/${of}  ${text}`;
  return (event) => {
    switch (event.event) {
      case "run":
        return progress.report({ event: "note", text: headOf(event) });
      case "note":
        return progress.report(event);
      case "traffic":
        return;
      case "say":
        // The result has it; a run that fails has none.
        if (event.kind === "measured") return;
        if (event.kind !== "waiting") return progress.report({ event: "note", text: `      ${event.text}` });
        return progress.report({
          event: "step",
          id: event.id,
          state: "running",
          text: running,
          waitingFor: event.text,
        });
      case "step": {
        const text = line(event.number, event.of, `${event.title}${suffix(event)}`);
        if (event.state === "running" || event.state === "undoing") running = text;
        const detail = event.state === "done" || event.state === "failed" ? { detail: event.where } : {};
        return progress.report({ event: "step", id: event.id, state: progressState(event.state), text, ...detail });
      }
      case "end":
        if (event.outcome === "stopped") progress.report({ event: "note", text: stopped(event) });
        return;
    }
  };
}

/** The title is not repeated: it is the first line of the plan above. */
function headOf({ heading, resumed, run }: Extract<StepEvent, { event: "run" }>): string {
  if (heading === "back") return resumed ? `rollback of run ${run} resumed` : `rolling back run ${run}`;
  return `run ${run} ${resumed ? "resumed" : "started"}`;
}

function progressState(state: Extract<StepEvent, { event: "step" }>["state"]): "running" | "done" | "failed" {
  if (state === "failed") return "failed";
  return state === "done" || state === "skipped" || state === "undone" ? "done" : "running";
}

function suffix({ state, ms }: Extract<StepEvent, { event: "step" }>): string {
  if (state === "skipped") return "  skipped: already done";
  if (state === "undoing") return "  rolling back";
  if (state === "undone") return "  rolled back";
  if (state === "running") return "";
  return ms === undefined ? "" : `  ${seconds(ms)}`;
}

function stopped({ run, done, skipped, pending }: End): string {
  const total = done + skipped + pending;
  return `run ${run} stopped: ${done + skipped} of ${total} steps done; vendorctl resume continues it, vendorctl rollback undoes it`;
}

export function seconds(ms: number): string {
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)}s` : `${Math.floor(ms / 60_000)}m${Math.round((ms % 60_000) / 1000)}s`;
}

const STATE_TEXT = {
  done: "done",
  "rolled-back": "rolled back",
  stopped: "stopped",
  running: "running",
  aborted: "abandoned",
};

/** What was done, what it measured, and the next command. */
export async function printReport(
  session: Session,
  { end, measured, traffic }: RunReport,
  next: readonly string[],
): Promise<void> {
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
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ...(undone > 0 ? [`${undone} rolled back`] : []),
    // What a rollback never had to undo is not left to do.
    ...(pending > 0 && outcome !== "rolled-back" ? [`${pending} left`] : []),
  ];
  const width = session.config.outColumns;
  const lines = [
    wrapped(`${STATE_TEXT[outcome]} in ${seconds(ms)}: ${counts.join(", ") || "nothing to do"} (run ${run})`, {
      width,
    }),
    ...measured.map((text) => wrapped(text, { first: "measured: ", width })),
    ...next.map((command) => wrapped(command, { first: "next: ", width })),
  ];
  if (traffic) session.out(await trafficText(traffic, width));
  session.out(`${(await Promise.all(lines)).flat().join("\n")}\n`);
}
