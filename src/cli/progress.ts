import { printableLine, Styled, styled } from "./printable.ts";
import { wrapLine } from "./printer.ts";
import type { Session } from "./session.ts";

/** What a long command does, as it happens. A step is named by its id and reported again when its state or text changes. */
export type ProgressEvent =
  | {
      event: "step";
      id: string;
      state: "running" | "done" | "failed";
      text: string;
      /** What a running step waits for: on a line of its own, and nowhere once it is settled. */
      waitingFor?: string;
      /** Where a settled step did it: behind its text, if there is room for it. */
      detail?: string;
    }
  | { event: "note"; text: string };

export interface Progress {
  report(event: ProgressEvent): void;
  /** The result of it all: the last line with `-o json`, nothing elsewhere, because the command prints it itself. */
  result(value: object): void;
  /** Nothing is drawn after this. */
  close(): void;
}

const SYMBOL = { running: "..", done: "ok", failed: "!!" } as const;
type Step = Extract<ProgressEvent, { event: "step" }>;
type Paint = (state: Step["state"]) => Styled;

/** Live lines for a person, a line per step for a log, one JSON object a line for a program, nothing with `-q`. */
export async function openProgress(session: Session): Promise<Progress> {
  if (session.flags.output === "json") return jsonLines(session);
  if (session.flags.quiet) return { report() {}, result() {}, close() {} };
  const { createColors } = (await import("picocolors")).default;
  const colors = createColors(session.flags.color);
  const paint = { running: colors.dim, done: colors.green, failed: colors.red };
  const symbol: Paint = (state) => Styled.raw(paint[state](SYMBOL[state]));
  if (!session.config.interactive) return plainLines(session, symbol);
  return liveLines(session, symbol, await import("./layout.ts"));
}

function jsonLines({ out, flags }: Session): Progress {
  const write = (value: object) => out(`${JSON.stringify(value)}\n`);
  return {
    report(event) {
      if (!flags.quiet) write(event);
    },
    result: (value) => write({ event: "result", ...value }),
    close() {},
  };
}

const MINUTE_MS = 60_000;

/** A log gets one line per step, once it is settled; every minute, and with `-v 1` at once, what a step that still runs waits for. */
function plainLines({ err, flags }: Session, symbol: Paint): Progress {
  const open = new Map<string, { step: Step; since: number }>();
  const printed = new Map<string, string>();
  let timer: NodeJS.Timeout | undefined;
  const put = (id: string, line: Styled) => {
    if (printed.get(id) === line.text) return;
    printed.set(id, line.text);
    err(line);
  };
  const running = ({ text, waitingFor }: Step, after: string) =>
    styled`${symbol("running")}  ${text}${after}${waitingFor === undefined ? "" : `: ${waitingFor}`}\n`;
  const tick = () => {
    for (const { step, since } of open.values()) put(step.id, running(step, elapsed(performance.now() - since)));
  };
  const stop = () => {
    clearInterval(timer);
    timer = undefined;
  };
  return {
    report(event) {
      if (event.event === "note") return err(`${event.text}\n`);
      if (event.state === "running") {
        open.set(event.id, { step: event, since: open.get(event.id)?.since ?? performance.now() });
        timer ??= setInterval(tick, MINUTE_MS).unref();
        if (flags.v > 0) put(event.id, running(event, ""));
        return;
      }
      open.delete(event.id);
      if (open.size === 0) stop();
      put(event.id, styled`${symbol(event.state)}  ${withDetail(event)}\n`);
    },
    result() {},
    close: stop,
  };
}

const TICK_MS = 1000;
/** Columns of the symbol and the space after it. */
const MARK = 4;

/** What is settled scrolls by; what is under way is redrawn below it, with the time it has taken. */
function liveLines({ err, config }: Session, symbol: Paint, layout: typeof import("./layout.ts")): Progress {
  const open = new Map<string, { step: Step; since: number }>();
  // A line as wide as the terminal would wrap, and a wrapped line cannot be redrawn.
  const width = Math.max(10, config.columns - 1);
  let drawn = 0;
  let timer: NodeJS.Timeout | undefined;
  const line = (mark: Styled | string, text: string, after = "") =>
    `${styled`${mark}  `}${layout.cut(printableLine(text), width - MARK - after.length)}${after}\n`;
  const note = (text: string) => {
    const [, indent = "", rest = ""] = /^(\s*)(.*)$/s.exec(printableLine(text)) ?? [];
    return `${wrapLine(layout, rest, { first: indent, width }).join("\n")}\n`;
  };
  const live = ({ step, since }: { step: Step; since: number }) => [
    line(symbol(step.state), step.text, elapsed(performance.now() - since)),
    ...(step.waitingFor === undefined ? [] : [line("  ", step.waitingFor)]),
  ];
  const draw = (settled: string) => {
    const up = drawn > 0 ? `\x1b[${drawn}A` : "";
    const lines = [...open.values()].flatMap(live);
    drawn = lines.length;
    err(Styled.raw(`${up}\r\x1b[0J${settled}${lines.join("")}`));
  };
  const stop = () => {
    clearInterval(timer);
    timer = undefined;
  };
  return {
    report(event) {
      if (event.event === "note") return draw(note(event.text));
      if (event.state === "running") {
        open.set(event.id, { step: event, since: open.get(event.id)?.since ?? performance.now() });
        timer ??= setInterval(() => draw(""), TICK_MS).unref();
        return draw("");
      }
      // A settled step leaves the part that is redrawn, so the screen keeps it whatever comes after.
      open.delete(event.id);
      if (open.size === 0) stop();
      const whole = withDetail(event);
      draw(line(symbol(event.state), layout.fits(whole, width - MARK) ? whole : event.text));
    },
    result() {},
    close: stop,
  };
}

function withDetail({ text, detail }: Step): string {
  return detail === undefined ? text : `${text}  ${detail}`;
}

/** Nothing within the first second: most steps are over by then. */
function elapsed(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 1) return "";
  return seconds < 60 ? `  ${seconds}s` : `  ${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
