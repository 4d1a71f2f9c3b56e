import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readCliConfig } from "../../src/cli/config.ts";
import type { CliContext } from "../../src/cli/session.ts";
import { runVendorctl } from "../../src/cli/vendorctl.ts";
import type { Clock } from "../../src/kit/clock.ts";
import { columnsOf, openScreen, VIEWS, type View } from "./terminal.ts";

/** What one command line printed, as it is read. */
export interface Shown {
  view: View;
  text: string;
  faults: readonly string[];
}

export interface ShownOptions {
  /** The command line as it is printed; that of vendorctl if left out. */
  prompt?: string;
  /** What the user answers, where there is a terminal to be asked at. */
  answer?: string;
  clock?: Clock;
  signal?: AbortSignal;
  /** Gets everything that is written, at once. */
  hear?: (text: string) => void;
  loadClusterCommands?: CliContext["loadClusterCommands"];
  program?: (argv: readonly string[], world: CliContext) => Promise<number>;
}

/** Runs one command line at one width. */
export async function shownAt(view: View, argv: readonly string[], options: ShownOptions = {}): Promise<Shown> {
  const { answer, hear = () => {}, program = runVendorctl } = options;
  const screen = openScreen(view);
  const write = (text: unknown) => {
    screen.write(String(text));
    hear(String(text));
  };
  const stream = view === "piped" ? {} : { isTTY: true, columns: columnsOf(view) };
  const exit = await program(argv, {
    config: readCliConfig({}, stream),
    out: write,
    err: write,
    signal: options.signal ?? new AbortController().signal,
    argv,
    ...(options.clock && { clock: options.clock }),
    ...(view !== "piped" && {
      prompt: async (question: string) => {
        write(`${question}${answer ?? "n"}\n`);
        return answer ?? "n";
      },
    }),
    loadClusterCommands: options.loadClusterCommands ?? (() => import("../../src/local/commands.ts")),
  });
  const line = options.prompt ?? `vendorctl ${argv.join(" ")}`;
  const status = exit === 0 ? "" : `exit status ${exit}\n`;
  return { view, text: `$ ${line}\n${withNewline(screen.text())}${status}`, faults: screen.faults };
}

const withNewline = (text: string) => (text === "" || text.endsWith("\n") ? text : `${text}\n`);

/** All three, one after the other: for commands that change nothing. */
export async function shownEverywhere(argv: readonly string[], options: ShownOptions = {}): Promise<Shown[]> {
  const all: Shown[] = [];
  for (const view of VIEWS) all.push(await shownAt(view, argv, options));
  return all;
}

/** One text of what was shown at each width; widths at which it is the same share a part. */
export function goldenText(shown: readonly Shown[], normalise: (text: string) => string): string {
  const parts = new Map<string, View[]>();
  for (const { view, text } of shown) {
    const same = normalise(text);
    parts.set(same, [...(parts.get(same) ?? []), view]);
  }
  return [...parts].map(([text, views]) => `=== ${views.join(", ")}\n${text}`).join("\n");
}

const UPDATE = process.env["UPDATE_GOLDEN"] === "1";
export const UPDATE_HINT = "if this is meant: UPDATE_GOLDEN=1 npm test -- golden, and read the diff";

/** A folder of golden files. */
export class GoldenFolder {
  readonly #folder: URL;

  constructor(folder: URL) {
    this.#folder = folder;
  }

  /** What is kept under this name; with UPDATE_GOLDEN=1, what is printed now. */
  expected(name: string, actual: string): string {
    const path = new URL(`${name}.txt`, this.#folder);
    if (UPDATE) {
      mkdirSync(this.#folder, { recursive: true });
      writeFileSync(path, actual);
    }
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }

  /** Files that nothing is compared with; with UPDATE_GOLDEN=1 they are removed. */
  unused(names: readonly string[]): string[] {
    const known = new Set(names.map((name) => `${name}.txt`));
    const unused = readdirSync(this.#folder).filter((file) => !known.has(file));
    if (!UPDATE) return unused;
    for (const file of unused) rmSync(new URL(file, this.#folder));
    return [];
  }
}
