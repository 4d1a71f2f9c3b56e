import type { Session } from "./session.ts";

/** What a long command does, as it happens. A step is named by its id and reported again when its state or text changes. */
export type ProgressEvent =
  | { event: "step"; id: string; state: "running" | "done" | "failed"; text: string }
  | { event: "note"; text: string };

export interface Progress {
  report(event: ProgressEvent): void;
  /** The result of it all: the last line with `-o json`, nothing elsewhere, because the command prints it itself. */
  result(value: object): void;
}

const SYMBOL = { running: "..", done: "ok", failed: "!!" } as const;
type Step = Extract<ProgressEvent, { event: "step" }>;

/** Live lines for a person, plain lines for a log, one JSON object a line for a program, nothing with `-q`. */
export async function openProgress(session: Session): Promise<Progress> {
  if (session.flags.output === "json") return jsonLines(session);
  if (session.flags.quiet) return { report() {}, result() {} };
  const { createColors } = (await import("picocolors")).default;
  const colors = createColors(session.flags.color);
  const paint = { running: colors.dim, done: colors.green, failed: colors.red };
  const line = (step: Step) => `${paint[step.state](SYMBOL[step.state])}  ${step.text}`;
  return session.config.interactive ? liveLines(session, line) : plainLines(session, line);
}

function jsonLines({ out, flags }: Session): Progress {
  const write = (value: object) => out(`${JSON.stringify(value)}\n`);
  return {
    report(event) {
      if (!flags.quiet) write(event);
    },
    result: (value) => write({ event: "result", ...value }),
  };
}

function plainLines({ err }: Session, line: (step: Step) => string): Progress {
  const said = new Map<string, string>();
  return {
    report(event) {
      const text = event.event === "note" ? event.text : line(event);
      // Saying the same thing again tells a reader of a log nothing.
      if (event.event === "step" && said.get(event.id) === text) return;
      if (event.event === "step") said.set(event.id, text);
      err(`${text}\n`);
    },
    result() {},
  };
}

function liveLines({ err, config }: Session, line: (step: Step) => string): Progress {
  const open = new Map<string, Step>();
  let drawn = 0;
  const fitted = (step: Step): Step => ({ ...step, text: step.text.slice(0, Math.max(10, config.columns - 5)) });
  const draw = (settled: string) => {
    const up = drawn > 0 ? `\x1b[${drawn}A` : "";
    const live = [...open.values()].map((step) => `${line(fitted(step))}\n`);
    drawn = live.length;
    err(`${up}\r\x1b[0J${settled}${live.join("")}`);
  };
  return {
    report(event) {
      if (event.event === "note") return draw(`${event.text}\n`);
      if (event.state === "running") {
        open.set(event.id, event);
        return draw("");
      }
      // A settled step leaves the part that is redrawn, so the screen keeps it whatever comes after.
      open.delete(event.id);
      draw(`${line(event)}\n`);
    },
    result() {},
  };
}
