import { Writable } from "node:stream";

const CLEAR_LINE = "\r\x1b[2K";

/**
 * Where a run prints: whole lines, and on a terminal one live line below them. It is a stream, so that a console can
 * print through it; text that does not end its line is kept until it does.
 */
export class Screen extends Writable {
  #out;
  #live = "";
  #partial = "";

  constructor(out) {
    super({ decodeStrings: false });
    this.#out = out;
  }

  get isLive() {
    return this.#out.isTTY === true;
  }

  _write(chunk, _encoding, done) {
    this.print(String(chunk));
    done();
  }

  print(text) {
    const whole = this.#partial + text;
    const end = whole.lastIndexOf("\n") + 1;
    this.#partial = whole.slice(end);
    if (end === 0) return;
    this.#out.write(this.#live === "" ? whole.slice(0, end) : CLEAR_LINE + whole.slice(0, end) + this.#live);
  }

  line(text = "") {
    this.print(`${text}\n`);
  }

  /** Replaces the live line; an empty one takes it away. */
  live(text) {
    if (!this.isLive || text === this.#live) return;
    this.#live = text.slice(0, Math.max(0, (this.#out.columns || 80) - 1));
    this.#out.write(CLEAR_LINE + this.#live);
  }
}
