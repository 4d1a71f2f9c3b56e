import { createSocket } from "node:dgram";
import { connect, type Socket } from "node:net";
import { type ProbeReply, parseReply, plainAddress } from "./probe-reply.ts";

export interface ProbeTarget {
  host: string;
  port: number;
  protocol: "tcp" | "udp";
}

/** How one attempt went. */
export interface ProbeResult {
  /** When it began, in milliseconds since 1970. */
  at: number;
  to: string;
  protocol: "tcp" | "udp";
  ok: boolean;
  ms: number;
  answer?: ProbeReply;
  /** Over TCP: the client's own address. */
  from?: string;
  /** `TIMEOUT`, or what the kernel said. */
  error?: string;
}

/** Acts after so many milliseconds, unless what it answers is called before. */
export type After = (ms: number, act: () => void) => () => void;

const LINE = /^[^\n]*\n/;
const byTheClock: After = (ms, act) => {
  const timer = setTimeout(act, ms);
  return () => clearTimeout(timer);
};

/** One connection, or one datagram, and the answer to it. Never throws: not to be reached is a result. */
export async function probeOnce(target: ProbeTarget, timeoutMs: number, after = byTheClock): Promise<ProbeResult> {
  let from: string | undefined;
  const result = await measured(target, async () => {
    if (target.protocol === "udp") return await requestUdp(target, timeoutMs, after);
    const socket = connect(target);
    try {
      const reply = await firstLine(socket, timeoutMs, after);
      from = plainAddress(socket.localAddress);
      return reply;
    } finally {
      socket.destroy();
    }
  });
  return { ...result, ...(from && { from }) };
}

/** One long-lived TCP connection: a line now and then, each of which must come back. After a break it reconnects, and reports it. */
export class PersistentProbe {
  readonly #target: ProbeTarget;
  readonly #timeoutMs: number;
  #socket: Socket | undefined;
  #sent = 0;

  constructor(target: ProbeTarget, timeoutMs: number) {
    this.#target = target;
    this.#timeoutMs = timeoutMs;
  }

  async request(): Promise<ProbeResult> {
    const result = await measured(this.#target, () => this.#exchange());
    if (!result.ok) this.close();
    return result;
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  async #exchange(): Promise<ProbeReply | undefined> {
    if (!this.#socket) {
      this.#socket = connect(this.#target).setNoDelay(true);
      return await firstLine(this.#socket, this.#timeoutMs);
    }
    const line = `${++this.#sent}\n`;
    this.#socket.write(line);
    const back = await lineOf(this.#socket, this.#timeoutMs);
    if (back !== line) throw Object.assign(new Error("another answer came back"), { code: "MIXED_UP" });
    return undefined;
  }
}

async function measured(target: ProbeTarget, ask: () => Promise<ProbeReply | undefined>): Promise<ProbeResult> {
  const at = Date.now();
  const began = performance.now();
  const { host, port, protocol } = target;
  const to = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  const result = (rest: Pick<ProbeResult, "ok" | "answer" | "error">): ProbeResult => {
    const ms = Math.round((performance.now() - began) * 1000) / 1000;
    return { at, to, protocol, ms, ...rest };
  };
  try {
    const answer = await ask();
    return result({ ok: true, ...(answer && { answer }) });
  } catch (error) {
    return result({ ok: false, error: (error as NodeJS.ErrnoException).code ?? String(error) });
  }
}

async function firstLine(socket: Socket, timeoutMs: number, after?: After): Promise<ProbeReply> {
  const answer = parseReply(await lineOf(socket, timeoutMs, after));
  if (!answer) throw Object.assign(new Error("the answer is not of a probe"), { code: "NOT_A_PROBE" });
  return answer;
}

function lineOf(socket: Socket, timeoutMs: number, after = byTheClock): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const finish = (settle: () => void) => {
      inTime();
      socket.off("data", take).off("error", fail).off("close", gone);
      settle();
    };
    const fail = (error: Error) => finish(() => reject(error));
    const gone = () => fail(Object.assign(new Error("closed"), { code: "ECONNRESET" }));
    const take = (chunk: Buffer) => {
      text += chunk.toString();
      if (LINE.test(text)) finish(() => resolve(text));
    };
    const inTime = after(timeoutMs, () => fail(Object.assign(new Error("late"), { code: "TIMEOUT" })));
    socket.on("data", take).on("error", fail).on("close", gone);
  });
}

/** A datagram that is lost is sent again until time is over: one loss is not a refusal. */
const AGAIN_MS = 200;

function requestUdp({ host, port }: ProbeTarget, timeoutMs: number, after: After): Promise<ProbeReply> {
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  return new Promise<ProbeReply>((resolve, reject) => {
    const send = () => socket.send("probe\n", port, host);
    const again = setInterval(send, AGAIN_MS);
    const inTime = after(timeoutMs, () => reject(Object.assign(new Error("late"), { code: "TIMEOUT" })));
    socket.once("close", () => {
      clearInterval(again);
      inTime();
    });
    socket.once("error", reject);
    socket.on("message", (message) => {
      const answer = parseReply(message.toString());
      if (answer) resolve(answer);
    });
    send();
  }).finally(() => socket.close());
}
