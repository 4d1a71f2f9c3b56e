import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/kit/clock.ts";
import type { GoldenFolder, Shown, ShownOptions } from "../support/golden.ts";
import { goldenText, shownAt, shownEverywhere, UPDATE_HINT } from "../support/golden.ts";
import { forgetReads, together } from "../support/shared-runs.ts";
import { VIEWS } from "../support/terminal.ts";

/** One command line of a golden file, and how it is run. */
export interface Case {
  /** The name of its file; the command line if left out. */
  name?: string;
  line: string;
  /** It changes the cluster through a run: done once, and printed at every width. */
  runs?: true | { interruptAfter: number };
  /** What the user answers at a terminal; no. */
  answer?: string;
  /** Before the command, once for all widths. */
  before?: () => Promise<void>;
  /** Before the command at each width. */
  beforeEach?: () => Promise<void>;
}

function nameOf({ name, line }: Case): string {
  return name ?? line.replace(/[^\w.=]+/g, "-").replace(/^-|-$/g, "");
}

/** A directory with a path of always the same length, because lines are wrapped by it. */
const HOME = "/tmp/vctl-home";

/** Plays cases one after the other; each a minute later than the one before, and without taking time. */
export class GoldenSession {
  readonly home: string;
  readonly #environment = { VENDORCTL_HOME: process.env["VENDORCTL_HOME"], KUBECONFIG: process.env["KUBECONFIG"] };
  readonly #options: Pick<ShownOptions, "loadClusterCommands">;
  readonly #ports = new Set<string>();
  #now = Date.parse("2026-01-01T12:00:00Z");

  constructor(options: Pick<ShownOptions, "loadClusterCommands"> = {}) {
    this.#options = options;
    this.home = mkdtempSync(HOME);
    process.env["VENDORCTL_HOME"] = this.home;
  }

  useKubeconfig(path: string): void {
    process.env["KUBECONFIG"] = path;
  }

  file(name: string, text: string): string {
    const path = join(this.home, name);
    writeFileSync(path, text);
    return path;
  }

  async play(one: Case): Promise<Shown[]> {
    const changes = one.runs || one.before || one.beforeEach || one.line.includes("--as ");
    if (changes) forgetReads();
    try {
      return await this.#show(one);
    } finally {
      this.#rememberPort();
      if (changes) forgetReads();
    }
  }

  /** Each cluster has its own. */
  #rememberPort(): void {
    const file = process.env["KUBECONFIG"] ?? "";
    const port = existsSync(file) ? /127\.0\.0\.1:(\d+)/.exec(readFileSync(file, "utf8"))?.[1] : undefined;
    if (port !== undefined) this.#ports.add(port);
  }

  async #show(one: Case): Promise<Shown[]> {
    this.#now += 60_000;
    const now = this.#now;
    await one.before?.();
    const { runs, answer } = one;
    const options: ShownOptions = {
      ...this.#options,
      ...(answer !== undefined && { answer }),
      clock: { ...systemClock, now: () => now },
    };
    const argv = wordsOf(one.line.replaceAll("HOME", this.home));
    const shownHere = { ...options, prompt: `vendorctl ${one.line}` };
    if (runs) {
      const interruptAfter = runs === true ? undefined : runs.interruptAfter;
      return await together(VIEWS, { interruptAfter }, (view, signal) => shownAt(view, argv, { ...shownHere, signal }));
    }
    if (!one.beforeEach) return await shownEverywhere(argv, shownHere);
    const shown: Shown[] = [];
    for (const view of VIEWS) {
      await one.beforeEach();
      shown.push(await shownAt(view, argv, shownHere));
    }
    return shown;
  }

  /** What differs from run to run, by something as wide. */
  normalise = (text: string): string =>
    text
      // The random part of the directory, which may stand at the start of a line.
      .replaceAll(this.home.slice(HOME.lastIndexOf("-") + 1), "homexxxxxx")
      .replace(/\b([a-z]+-)[0-9a-f]{8}(-[0-9a-z]{8})?\b/g, (_, procedure: string, time?: string) => {
        return `${procedure}xxxxxxxx${time === undefined ? "" : "-xxxxxxxx"}`;
      })
      // Of files that every change of a manifest or a program changes.
      .replace(/\bsha256:[0-9a-f]{12,64}\b/g, (digest) => `sha256:${"x".repeat(digest.length - 7)}`)
      .replace(/\d{5}/g, (port) => (this.#ports.has(port) ? "PPPPP" : port))
      // Of the flow UI.
      .replace(/(?<=http:\/\/127\.0\.0\.1:)\d{5}\b/g, "PPPPP")
      .replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z/g, (time) => time.replace(/\d/g, "0"))
      .replace(new RegExp(`process \\d+ on ${hostname()}`, "g"), "process PID on HOST")
      // The age of an object is the last column, so nothing moves when it is longer.
      .replace(/ {2}(?:\d{1,3}[smh]){1,2}$/gm, "  AGE")
      .replace(/(?<= {2})\d{1,2}s {1,2}(?= {3}\S+$)/gm, "AGE")
      .replace(/^\d\d:\d\d:\d\d\.\d{3} /gm, "HH:MM:SS.mmm ");

  close(): void {
    for (const [name, value] of Object.entries(this.#environment)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** Half a minute on an idle machine; a busy one may take many times as long. */
const PATIENCE_MS = 900_000;

/** Plays all cases in their order, then compares each with its file. */
export function describeCases(golden: GoldenFolder, session: GoldenSession, cases: readonly Case[]): void {
  const shown = new Map<string, Shown[]>();
  beforeAll(async () => {
    for (const one of cases) shown.set(nameOf(one), await session.play(one));
  }, PATIENCE_MS);

  describe("what is printed is what the golden files show", () => {
    it.each(cases.map(nameOf))("%s", (name) => {
      const here = shown.get(name) ?? [];
      expect(here.map(({ view }) => view)).toEqual(VIEWS);
      const text = goldenText(here, session.normalise);
      expect(text, UPDATE_HINT).toBe(golden.expected(name, text));
      expect(here.flatMap(({ faults }) => faults)).toEqual([]);
    });

    it("has no file that nothing is compared with", () => {
      expect(new Set(cases.map(nameOf)).size).toBe(cases.length);
      expect(golden.unused(cases.map(nameOf))).toEqual([]);
    });
  });
}

/** As a shell splits it, for lines that have no quotes in quotes. */
function wordsOf(line: string): string[] {
  return (line.match(/(?:'[^']*'|\S)+/g) ?? []).map((word) => word.replaceAll("'", ""));
}
