import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";

/** How long nobody answers before a story says so. Emulated machines are slow, and two tries of a handshake must fit. */
const SILENCE_MS = 2_500;
const ANSWER_MS = 30_000;
/** Some hundred packets. */
const BULK = 200_000;

interface Wish {
  id: number;
  act: "listen" | "open" | "echo" | "bulk" | "drop";
  address?: string;
  port?: number;
  waitMs?: number;
  connection?: number;
}

/** Somebody who speaks from a network namespace: a thread of its own, since Node opens connections where its thread is. */
export class Speaker {
  private readonly worker: Worker;
  private asked = 0;

  constructor(netns: Netns) {
    this.worker = new Worker(new URL(import.meta.url), { workerData: { netns: netns.name } });
    this.worker.setMaxListeners(100);
  }

  /** Answers every connection with what it says. */
  async listen(port: number): Promise<void> {
    await this.ask({ act: "listen", port });
  }

  /** A connection, which must succeed. */
  async open(address: string, port: number): Promise<Connection> {
    const answer = await this.ask({ act: "open", address, port, waitMs: ANSWER_MS });
    if (typeof answer !== "number") throw new Error(`${address} port ${port}: ${answer}`);
    return new Connection((act, waitMs) => this.ask({ act, connection: answer, waitMs }));
  }

  /** Whether somebody answers there, and if not, whether we were refused or heard nothing. */
  async tries(address: string, port: number): Promise<"answered" | string> {
    const answer = await this.ask({ act: "open", address, port, waitMs: SILENCE_MS });
    if (typeof answer !== "number") return answer;
    await this.ask({ act: "drop", connection: answer });
    return "answered";
  }

  async close(): Promise<void> {
    await this.worker.terminate();
  }

  private async ask(wish: Omit<Wish, "id">): Promise<string | number> {
    const id = this.asked++;
    this.worker.postMessage({ ...wish, id });
    for (;;) {
      const [reply] = (await once(this.worker, "message")) as [{ id: number; answer: string | number }];
      if (reply.id === id) return reply.answer;
    }
  }
}

export class Connection {
  private readonly ask: (act: "echo" | "bulk" | "drop", waitMs: number) => Promise<string | number>;

  constructor(ask: (act: "echo" | "bulk" | "drop", waitMs: number) => Promise<string | number>) {
    this.ask = ask;
  }

  /** What we say must come back. */
  async answers(): Promise<void> {
    const answer = await this.ask("echo", ANSWER_MS);
    if (answer !== "answered") throw new Error(`a connection that should go on: ${answer}`);
  }

  /** The same with many packets, as long as they may be. */
  async answersAtLength(): Promise<void> {
    const answer = await this.ask("bulk", ANSWER_MS);
    if (answer !== "answered") throw new Error(`a connection that should go on: ${answer}`);
  }

  async tries(): Promise<"answered" | string> {
    return String(await this.ask("echo", SILENCE_MS));
  }

  async close(): Promise<void> {
    await this.ask("drop", 0);
  }
}

/** The thread's side. */
export function speakInside(): void {
  const { netns: port } = realKernel();
  const netns = port.open((workerData as { netns: string }).netns);
  port.enter(netns);
  const connections: Socket[] = [];
  parentPort!.on("message", (wish: Wish) => {
    void fulfil(wish, connections).then((answer) => parentPort!.postMessage({ id: wish.id, answer }));
  });
}

async function fulfil(wish: Wish, connections: Socket[]): Promise<string | number> {
  const { act, address, port = 0, waitMs = 0, connection = -1 } = wish;
  if (act === "listen") return listen(port);
  if (act === "echo") return echo(connections[connection]!, waitMs, 5);
  if (act === "bulk") return echo(connections[connection]!, waitMs, BULK);
  if (act === "drop") {
    connections[connection]!.destroy();
    return "dropped";
  }
  const socket = connect({ host: address, port });
  const outcome = await within(waitMs, once(socket, "connect"));
  // A cut connection may be reset much later, when nobody asks any more.
  socket.on("error", () => undefined);
  if (outcome !== "happened") {
    socket.destroy();
    return outcome;
  }
  return connections.push(socket) - 1;
}

async function listen(port: number): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.pipe(socket);
  });
  server.listen({ host: "::", port });
  await once(server, "listening");
  return "listening";
}

async function echo(socket: Socket, waitMs: number, bytes: number): Promise<string> {
  const outcome = await within(waitMs, allBack(socket, bytes));
  return outcome === "happened" ? "answered" : outcome;
}

async function allBack(socket: Socket, bytes: number): Promise<void> {
  socket.write(Buffer.alloc(bytes, "hello"));
  for (let seen = 0; seen < bytes; ) {
    const [data] = (await once(socket, "data")) as [Buffer];
    seen += data.length;
  }
}

async function within(waitMs: number, event: Promise<unknown>): Promise<"happened" | "silence" | string> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve("silence"), waitMs);
  });
  const happened = event.then(
    () => "happened",
    (error: NodeJS.ErrnoException) => error.code ?? error.message,
  );
  const outcome = await Promise.race([happened, silence]);
  clearTimeout(timer);
  return outcome;
}
