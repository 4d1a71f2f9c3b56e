import { createSocket, type Socket } from "node:dgram";
import type { TrafficRow } from "../../api/protocol/traffic-report.ts";
import { type MeasuredPath, type PathOptions, TIMEOUT_MS } from "./measured-path.ts";
import { type PauseMeter, Silence } from "./pause-meter.ts";
import { parseReply } from "./probe-reply.ts";

/** A datagram that has no answer by then has none. */
const LATE_MS = 2000;
/** How long a socket may wait for its first answer. */
const FIRST_ANSWER_MS = 500;

/** A long-lived socket with constant traffic, and short-lived ones that send one datagram each. */
export class MeasuredUdp implements MeasuredPath {
  readonly #options: PathOptions;
  readonly #awake: PauseMeter;
  readonly #silence: Silence;
  #kept: Socket | undefined;
  /** In time that this process was awake. */
  #heardAt = 0;
  #reached = false;
  #number = 0;
  /** When each datagram was sent that has no answer yet; what is late is taken out, so it stays small. */
  readonly #open = new Map<string, { sentAt: number; pausedThen: number; socket: Socket; once: boolean }>();
  #sent = 0;
  #unanswered = 0;
  #closed = false;

  constructor(options: PathOptions, awake: PauseMeter) {
    this.#options = options;
    this.#awake = awake;
    this.#silence = new Silence(awake);
  }

  tick(now: number): void {
    this.#countLate(now);
    // The first packet of a socket may decide its way for good, so a socket that is not answered is given up for a new one.
    const awake = now - this.#awake.pausedMs;
    if (this.#kept && awake - this.#heardAt > (this.#reached ? TIMEOUT_MS : FIRST_ANSWER_MS)) this.#drop(now);
    if (!this.#kept) {
      this.#kept = this.#socket();
      this.#heardAt = awake;
    }
    this.#send(this.#kept, now, false);
  }

  churn(): void {
    if (!this.#reached) return;
    this.#send(this.#socket(), performance.now(), true);
  }

  row(now: number): TrafficRow {
    return {
      way: this.#options.path,
      protocol: "udp",
      reached: this.#reached,
      opened: 0,
      lost: 0,
      replaced: 0,
      silenceMs: Math.round(this.#silence.longestMs(now)),
      sent: this.#sent,
      unanswered: this.#unanswered,
    };
  }

  close(): void {
    this.#closed = true;
    this.#kept?.close();
    for (const { socket, once } of this.#open.values()) if (once) socket.close();
    this.#open.clear();
  }

  #socket(): Socket {
    const socket = createSocket(this.#options.host.includes(":") ? "udp6" : "udp4");
    socket.on("message", (message) => this.#hear(socket, message.toString()));
    // What the kernel refuses to send is never answered, and counts as that.
    socket.on("error", () => {});
    return socket;
  }

  #send(socket: Socket, now: number, once: boolean): void {
    const said = `${++this.#number}`;
    this.#open.set(said, { sentAt: now, pausedThen: this.#awake.pausedMs, socket, once });
    if (this.#reached) this.#sent++;
    socket.send(`${said}\n`, this.#options.port, this.#options.host, () => {});
  }

  #hear(socket: Socket, line: string): void {
    const said = parseReply(line)?.said ?? "";
    const asked = this.#open.get(said);
    if (this.#closed || asked?.socket !== socket) return;
    this.#open.delete(said);
    if (asked.once) {
      socket.close();
      return;
    }
    // What was sent before a server could answer is no loss.
    if (!this.#reached) {
      this.#open.clear();
      this.#sent++;
    }
    this.#reached = true;
    const now = performance.now();
    this.#silence.reset(now);
    this.#heardAt = now - this.#awake.pausedMs;
  }

  #countLate(now: number): void {
    for (const [said, { sentAt, pausedThen, socket, once }] of this.#open) {
      if (now - sentAt - (this.#awake.pausedMs - pausedThen) < LATE_MS) break;
      this.#open.delete(said);
      if (this.#reached) this.#unanswered++;
      if (once) socket.close();
    }
  }

  /** Its datagrams that are still on their way have lost whom to answer. */
  #drop(now: number): void {
    this.#countLate(now);
    for (const [said, { socket }] of this.#open) {
      if (socket !== this.#kept) continue;
      this.#open.delete(said);
      if (this.#reached) this.#unanswered++;
    }
    this.#kept?.close();
    this.#kept = undefined;
  }
}
