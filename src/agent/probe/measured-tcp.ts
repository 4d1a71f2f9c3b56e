import { connect, type Socket } from "node:net";
import type { TrafficRow } from "../../api/protocol/traffic-report.ts";
import { type MeasuredPath, type PathOptions, REPLY_MS, TIMEOUT_MS } from "./measured-path.ts";
import { type PauseMeter, Silence } from "./pause-meter.ts";
import { type After, probeOnce } from "./probe-client.ts";

/** A long-lived connection with constant traffic, and short-lived ones in parallel. */
export class MeasuredTcp implements MeasuredPath {
  readonly #options: PathOptions;
  readonly #awake: PauseMeter;
  readonly #silence: Silence;
  #socket: Socket | undefined;
  /** Whether the one there is has been answered: only then can it be lost. */
  #answered = false;
  /** In time that this process was awake. */
  #triedAt = 0;
  #heardAt = 0;
  #reached = false;
  #opened = 0;
  #lost = 0;
  #replaced = 0;
  #closed = false;

  constructor(options: PathOptions, awake: PauseMeter) {
    this.#options = options;
    this.#awake = awake;
    this.#silence = new Silence(awake);
  }

  tick(at: number): void {
    const now = at - this.#awake.pausedMs;
    if (!this.#socket) this.#open(now);
    else if (this.#answered && now - this.#heardAt > TIMEOUT_MS) this.#end(true);
    else if (!this.#answered && now - this.#triedAt > REPLY_MS) this.#end(this.#reached);
    else if (this.#answered) this.#socket.write("measure\n");
  }

  churn(): void {
    if (!this.#reached) return;
    const { host, port } = this.#options;
    const after: After = (ms, act) => this.#awake.after(ms, act);
    void probeOnce({ host, port, protocol: "tcp" }, REPLY_MS, after).then(({ ok, answer, from }) => {
      if (this.#closed) return;
      this.#opened++;
      if (!ok) this.#lost++;
      if (answer && answer.client !== from) this.#replaced++;
    });
  }

  row(now: number): TrafficRow {
    return {
      way: this.#options.path,
      protocol: "tcp",
      reached: this.#reached,
      opened: this.#opened,
      lost: this.#lost,
      replaced: this.#replaced,
      silenceMs: Math.round(this.#silence.longestMs(now)),
      sent: 0,
      unanswered: 0,
    };
  }

  close(): void {
    this.#closed = true;
    this.#socket?.destroy();
  }

  #open(now: number): void {
    const { host, port } = this.#options;
    const socket = connect({ host, port }).setNoDelay(true);
    this.#socket = socket;
    this.#triedAt = now;
    this.#answered = false;
    socket.on("data", () => {
      if (this.#socket === socket) this.#hear();
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      if (this.#socket === socket && !this.#closed) this.#end(this.#answered || this.#reached);
    });
  }

  #hear(): void {
    const now = performance.now();
    this.#silence.reset(now);
    this.#heardAt = now - this.#awake.pausedMs;
    this.#reached = true;
    if (!this.#answered) this.#opened++;
    this.#answered = true;
  }

  #end(counts: boolean): void {
    if (counts) {
      this.#lost++;
      if (!this.#answered) this.#opened++;
    }
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.destroy();
  }
}
