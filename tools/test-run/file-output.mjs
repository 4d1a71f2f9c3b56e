import { Writable } from "node:stream";
import { isForeign } from "./warnings.mjs";

/** On a vitest instance: where its workers put what test files print. */
export const OUTPUT = Symbol.for("vendor-networking.test-output");

/** A file that prints more keeps only its end, which is where it failed. */
const KEPT_CHARACTERS = 200_000;

const NODE_WARNING = /^\((?:node|vendor\w*):(\d+)\) (?:\[\w+\] )?(\w*Warning: .*)/;

/** What test files and their child processes print, kept per file until it is known whether the file failed. */
export class FileOutput {
  #kept = new Map();
  #started = new Map();
  #onLine;
  #onWarning;

  /**
   * @param {{ onLine?: (file: string, line: string) => void, onWarning?: (file: string, warning: string) => void }} listeners
   *   `onWarning` is called for Node's warnings of child processes; a worker's own are known in the worker
   */
  constructor({ onLine = () => {}, onWarning = () => {} } = {}) {
    this.#onLine = onLine;
    this.#onWarning = onWarning;
  }

  /** A worker may have been given several files at once; what it prints belongs to the one it began last. */
  start(file) {
    this.#started.set(file, this.#started.size);
  }

  /** @param {{ files: string[], pid?: number }} worker what it runs is known only when it gets its work */
  streamOf(worker) {
    let partial = "";
    return new Writable({
      write: (chunk, _encoding, done) => {
        const lines = (partial + chunk).split("\n");
        partial = lines.pop();
        for (const line of lines) this.#take(worker, line);
        done();
      },
      final: (done) => {
        if (partial !== "") this.#take(worker, partial);
        done();
      },
    });
  }

  /** Returns what a file has printed, and forgets it. */
  takeText(file) {
    const { lines } = this.#kept.get(file) ?? { lines: [] };
    this.#kept.delete(file);
    return lines.map((line) => `${line}\n`).join("");
  }

  #take(worker, line) {
    const began = (file) => this.#started.get(file) ?? -1;
    const file = worker.files.reduce((last, next) => (began(next) > began(last) ? next : last), worker.files[0] ?? "");
    this.#keep(file, line);
    this.#onLine(file, line);
    const [, pid, warning] = NODE_WARNING.exec(line) ?? [];
    if (warning && Number(pid) !== worker.pid && !isForeign(warning)) this.#onWarning(file, warning);
  }
  #keep(file, line) {
    const kept = this.#kept.get(file) ?? { lines: [], characters: 0 };
    this.#kept.set(file, kept);
    kept.lines.push(line);
    kept.characters += line.length + 1;
    while (kept.characters > KEPT_CHARACTERS) kept.characters -= kept.lines.shift().length + 1;
  }
}
