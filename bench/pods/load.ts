/**
 * What the load's own processes do. They call the kernel directly and wait in it: an event loop between two packets would cost more than the
 * filters that are compared. Orders come as lines of JSON, answers go back the same way.
 */
import { readSync, writeSync } from "node:fs";
import { realNetns } from "../../src/kernel/netns/netns.ts";
import { openLibrary } from "../../src/kernel/sys.ts";

/** Where an order is carried out, and what. Times are in milliseconds. */
export type Order = { netns: string } & (
  | { do: "serve"; kind: TrafficKind }
  | { do: "drive"; kind: TrafficKind; address: string; warmUp: number; length: number }
  | { do: "time"; address: string; warmUp: number; length: number }
  | { do: "knock"; address: string; port: number; timeout: number }
  | { do: "ping"; address: string; until: "reply" | "quiet"; timeout: number }
);

/** `rr`: one byte there and back on one connection. `crr`: the same on a new connection each time. `stream`: as much as goes, one way. */
export type TrafficKind = "rr" | "crr" | "stream";

export interface Answer {
  ready?: true;
  count?: number;
  seconds?: number;
  /** How long each `connect` took, in microseconds, in order of length. */
  took?: number[];
  /** Processor time of this process while it counted; of a server, while it served. */
  cpu?: number;
  reached?: boolean;
  /** On the clock all processes of the machine share, in nanoseconds. */
  at?: string;
  failed?: string;
}

export const PORT = 7000;

const c = () =>
  openLibrary("libc.so.6", {
    socket: "int socket(int domain, int type, int protocol)",
    setsockopt: "int setsockopt(int fd, int level, int option, void *value, uint length)",
    bind: "int bind(int fd, void *address, uint length)",
    listen: "int listen(int fd, int backlog)",
    accept: "int accept(int fd, void *address, void *length)",
    connect: "int connect(int fd, void *address, uint length)",
    send: "long send(int fd, void *bytes, size_t length, int flags)",
    recv: "long recv(int fd, void *bytes, size_t length, int flags)",
    close: "int close(int fd)",
  });

type Libc = ReturnType<typeof c>;

const [AF_INET, SOCK_STREAM, SOCK_RAW, IPPROTO_ICMP, SOL_SOCKET, IPPROTO_TCP] = [2, 1, 3, 1, 1, 6];
const [SO_REUSEADDR, SO_RCVTIMEO, SO_SNDTIMEO, TCP_NODELAY, MSG_DONTWAIT, MSG_WAITALL, MSG_NOSIGNAL] = [
  2, 20, 21, 1, 0x40, 0x100, 0x4000,
];
const CHUNK = 128 * 1024;
/** Traffic that gets no answer for so long is not let through, and the run ends with that. */
const PATIENCE_MS = 5_000;
/** Connections that are open at once where each has one request. */
const AT_ONCE = 16;
/** The byte after which a server takes its next order. */
const LAST = 0xff;
/** Between two pings. Also how exactly the end of replies is known. */
const PING_MS = 0.3;
/** After so long without a reply there will be none. */
const QUIET_MS = 120;

/** Takes orders until there are no more. */
export function load(): void {
  const libc = c();
  for (let order = nextOrder(); order; order = nextOrder()) {
    const netns = realNetns().open(order.netns);
    realNetns().enter(netns);
    netns.close();
    try {
      tell(carryOut(libc, order));
    } catch (error) {
      tell({ failed: (error as Error).message });
    }
  }
}

function carryOut(libc: Libc, order: Order): Answer {
  if (order.do === "serve") return serve(libc, order.kind);
  if (order.do === "drive") return drive(libc, order);
  if (order.do === "time") return timeConnects(libc, order);
  if (order.do === "knock") return knock(libc, order);
  return ping(libc, order);
}

let unread = "";
const input = Buffer.alloc(4096);

function nextOrder(): Order | undefined {
  while (!unread.includes("\n")) {
    const length = readSync(0, input);
    if (length === 0) return undefined;
    unread += input.toString("utf8", 0, length);
  }
  const [line = ""] = unread.split("\n", 1);
  unread = unread.slice(line.length + 1);
  return JSON.parse(line) as Order;
}

function tell(answer: Answer): void {
  writeSync(1, `${JSON.stringify(answer)}\n`);
}

function serve(libc: Libc, kind: TrafficKind): Answer {
  const listener = must("socket", libc.socket(AF_INET, SOCK_STREAM, 0));
  option(libc, listener, SOL_SOCKET, SO_REUSEADDR, word(1));
  must("bind", libc.bind(listener, socketAddress("0.0.0.0", PORT), 16));
  must("listen", libc.listen(listener, 128));
  tell({ ready: true });
  const before = cpuSeconds();
  const bytes = Buffer.alloc(CHUNK);
  for (let more = true; more; ) {
    const fd = must("accept", libc.accept(listener, null, null));
    more = kind === "crr" ? answerOnce(libc, fd, bytes) : answerAll(libc, fd, bytes, kind);
    libc.close(fd);
  }
  libc.close(listener);
  return { cpu: cpuSeconds() - before };
}

/** Whether to go on. The server closes first, so that its client's ports are free again at once. */
function answerOnce(libc: Libc, fd: number, bytes: Buffer): boolean {
  if (Number(libc.recv(fd, bytes, 1, 0)) !== 1) return true;
  libc.send(fd, bytes, 1, MSG_NOSIGNAL);
  return bytes[0] !== LAST;
}

function answerAll(libc: Libc, fd: number, bytes: Buffer, kind: TrafficKind): boolean {
  option(libc, fd, IPPROTO_TCP, TCP_NODELAY, word(1));
  for (;;) {
    const length = Number(libc.recv(fd, bytes, kind === "rr" ? 1 : CHUNK, 0));
    if (length <= 0) return false;
    if (kind === "rr") libc.send(fd, bytes, 1, MSG_NOSIGNAL);
  }
}

function drive(libc: Libc, order: Order & { do: "drive" }): Answer {
  const to = socketAddress(order.address, PORT);
  const bytes = Buffer.alloc(CHUNK);
  if (order.kind === "crr") {
    const answer = repeat(order, AT_ONCE, () => connectAndAsk(libc, to, bytes));
    bytes[0] = LAST;
    connectAndAsk(libc, to, bytes, 1);
    return answer;
  }
  const fd = connected(libc, to);
  option(libc, fd, IPPROTO_TCP, TCP_NODELAY, word(1));
  const answer =
    order.kind === "rr"
      ? repeat(order, 32, () => askOften(libc, fd, bytes))
      : repeat(order, 1, () => must("send", libc.send(fd, bytes, CHUNK, MSG_NOSIGNAL)));
  libc.close(fd);
  return order.kind === "stream" ? { ...answer, count: answer.count! * CHUNK } : answer;
}

/** `act` does `batch` of what is counted. */
function repeat({ warmUp, length }: { warmUp: number; length: number }, batch: number, act: () => void): Answer {
  const go = (until: number) => {
    let count = 0;
    for (; performance.now() < until; count += batch) act();
    return count;
  };
  go(performance.now() + warmUp);
  const cpu = cpuSeconds();
  const started = performance.now();
  const count = go(started + length);
  return { count, seconds: (performance.now() - started) / 1e3, cpu: cpuSeconds() - cpu };
}

const sockets: number[] = [];

/** Some connections at once, as a server has them: one at a time would mostly measure how two processes take turns. */
function connectAndAsk(libc: Libc, to: Buffer, bytes: Buffer, atOnce = AT_ONCE): void {
  for (let at = 0; at < atOnce; at++) {
    const fd = must("socket", libc.socket(AF_INET, SOCK_STREAM, 0));
    must("connect", libc.connect(fd, to, 16));
    libc.send(fd, bytes, 1, MSG_NOSIGNAL);
    sockets[at] = fd;
  }
  for (let at = 0; at < atOnce; at++) {
    // More than there will be: it returns when the server has closed.
    const length = Number(libc.recv(sockets[at], bytes, 2, MSG_WAITALL));
    if (length !== 1) throw new Error("a request got no reply");
    libc.close(sockets[at]);
  }
}

/** One connection at a time, to a server of `crr`: how long each takes to be there. */
function timeConnects(libc: Libc, order: Order & { do: "time" }): Answer {
  const to = socketAddress(order.address, PORT);
  const bytes = Buffer.alloc(2);
  let took: number[] = [];
  const connectOnce = () => {
    const fd = must("socket", libc.socket(AF_INET, SOCK_STREAM, 0));
    const before = process.hrtime.bigint();
    must("connect", libc.connect(fd, to, 16));
    took.push(Number(process.hrtime.bigint() - before) / 1e3);
    libc.send(fd, bytes, 1, MSG_NOSIGNAL);
    if (Number(libc.recv(fd, bytes, 2, MSG_WAITALL)) !== 1) throw new Error("a request got no reply");
    libc.close(fd);
  };
  for (const until = performance.now() + order.warmUp; performance.now() < until; ) connectOnce();
  took = [];
  const started = performance.now();
  for (const until = started + order.length; performance.now() < until; ) connectOnce();
  const seconds = (performance.now() - started) / 1e3;
  const answer = { took: took.toSorted((a, b) => a - b), count: took.length, seconds };
  bytes[0] = LAST;
  connectOnce();
  return answer;
}

function askOften(libc: Libc, fd: number, bytes: Buffer): void {
  for (let at = 0; at < 32; at++) {
    libc.send(fd, bytes, 1, MSG_NOSIGNAL);
    if (Number(libc.recv(fd, bytes, 1, 0)) !== 1) throw new Error("a request got no reply");
  }
}

function connected(libc: Libc, to: Buffer): number {
  const fd = must("socket", libc.socket(AF_INET, SOCK_STREAM, 0));
  option(libc, fd, SOL_SOCKET, SO_SNDTIMEO, duration(PATIENCE_MS * 1e3));
  option(libc, fd, SOL_SOCKET, SO_RCVTIMEO, duration(PATIENCE_MS * 1e3));
  must("connect", libc.connect(fd, to, 16));
  return fd;
}

/** Whether anybody answers at a port: refusing is an answer too, but takes no time. */
function knock(libc: Libc, { address, port, timeout }: Order & { do: "knock" }): Answer {
  const fd = must("socket", libc.socket(AF_INET, SOCK_STREAM, 0));
  option(libc, fd, SOL_SOCKET, SO_SNDTIMEO, duration(timeout * 1e3));
  const started = performance.now();
  const result = Number(libc.connect(fd, socketAddress(address, port), 16));
  libc.close(fd);
  return { reached: result === 0 || performance.now() - started < timeout * 0.9 };
}

/** Asks again and again for an echo: until the first comes back, or until none has come back for a while, and tells when that was. */
function ping(libc: Libc, { address, until, timeout }: Order & { do: "ping" }): Answer {
  const fd = must("socket", libc.socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
  must("connect", libc.connect(fd, socketAddress(address, 0), 16));
  const request = echoRequest();
  const deadline = performance.now() + timeout;
  let last: bigint | undefined;
  try {
    while (performance.now() < deadline) {
      libc.send(fd, request, request.length, MSG_NOSIGNAL);
      pause();
      if (gotReply(libc, fd)) {
        if (until === "reply") return { at: String(process.hrtime.bigint()) };
        if (last === undefined) tell({ ready: true });
        last = process.hrtime.bigint();
      }
      if (last !== undefined && Number(process.hrtime.bigint() - last) > QUIET_MS * 1e6) return { at: String(last) };
    }
    throw new Error(`${address}: no ${until} within ${timeout} ms`);
  } finally {
    libc.close(fd);
  }
}

const packet = Buffer.alloc(256);

/** Whether any of what arrived by now is a reply. */
function gotReply(libc: Libc, fd: number): boolean {
  let found = false;
  while (Number(libc.recv(fd, packet, packet.length, MSG_DONTWAIT)) > 0) found ||= isReply();
  return found;
}

const nobody = new Int32Array(new SharedArrayBuffer(4));

/** Not by a timeout of the socket: those are as coarse as the kernel's tick. */
function pause(): void {
  Atomics.wait(nobody, 0, 0, PING_MS);
}

function echoRequest(): Buffer {
  const bytes = Buffer.from([8, 0, 0, 0, 0, 0, 0, 1]);
  bytes.writeUInt16BE(process.pid & 0xffff, 4);
  const sum = 0x0800 + bytes.readUInt16BE(4) + 1;
  bytes.writeUInt16BE(~((sum & 0xffff) + (sum >> 16)) & 0xffff, 2);
  return bytes;
}

/** It is an IPv4 packet, header and all. */
function isReply(): boolean {
  const header = (packet[0]! & 15) * 4;
  return packet[header] === 0 && packet.readUInt16BE(header + 4) === (process.pid & 0xffff);
}

function socketAddress(address: string, port: number): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeUInt16LE(AF_INET, 0);
  bytes.writeUInt16BE(port, 2);
  bytes.set(address.split(".").map(Number), 4);
  return bytes;
}

function option(libc: Libc, fd: number, level: number, name: number, value: Buffer): void {
  must("setsockopt", libc.setsockopt(fd, level, name, value, value.length));
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function duration(microseconds: number): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeBigInt64LE(BigInt(Math.floor(microseconds / 1e6)), 0);
  bytes.writeBigInt64LE(BigInt(microseconds % 1e6), 8);
  return bytes;
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

function must(what: string, result: unknown): number {
  if (Number(result) < 0) throw new Error(`${what} failed`);
  return Number(result);
}
