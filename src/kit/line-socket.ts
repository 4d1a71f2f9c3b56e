import { connect, createServer, type Socket } from "node:net";
import { listenAtSocket } from "./unix-socket.ts";

/** One question and one answer per connection over a unix socket, each one line of JSON. */
export interface LineServer {
  close(): Promise<void>;
}

/** A request longer than this is not from a client of ours. */
const LONGEST = 4 * 1024 * 1024;

const QUESTION_MS = 10_000;
const OWNER_ONLY = 0o600;

/**
 * Listens at `path`, replacing an earlier socket: a process that was killed leaves its socket behind.
 * Only the user we run as may connect. What `replyTo` throws ends the connection without an answer.
 */
export async function serveLines(path: string, answer: (question: unknown) => Promise<unknown>): Promise<LineServer> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => socket.destroy());
    void answerOne(socket, answer);
  });
  const removeSocket = await listenAtSocket(server, path, OWNER_ONLY);
  return {
    async close() {
      removeSocket();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** Sends a request and returns the reply. Rejects if no server listens, if the reply does not come in time, or is cut off. */
export function requestLine(path: string, question: unknown, timeoutMs: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const parts: string[] = [];
    socket.setEncoding("utf8");
    const timer = setTimeout(
      () => socket.destroy(new Error(`no answer within ${Math.round(timeoutMs / 1000)} s`)),
      timeoutMs,
    );
    socket.on("connect", () => socket.end(`${JSON.stringify(question)}\n`));
    socket.on("data", (text: string) => parts.push(text));
    socket.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    socket.on("end", () => {
      clearTimeout(timer);
      const text = parts.join("");
      try {
        if (!text.endsWith("\n")) throw new Error("the answer was cut off");
        resolve(JSON.parse(text));
      } catch (error) {
        reject(error);
      }
    });
  });
}

async function answerOne(socket: Socket, answer: (question: unknown) => Promise<unknown>): Promise<void> {
  try {
    const given = await answer(JSON.parse(await lineFrom(socket)));
    socket.end(`${JSON.stringify(given)}\n`);
  } catch {
    socket.destroy();
  }
}

async function lineFrom(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("utf8");
  // A connection on which no whole question comes would stay for ever.
  socket.setTimeout(QUESTION_MS, () => socket.destroy());
  for await (const part of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<string>) {
    text += part;
    if (text.length > LONGEST) throw new Error("the question is too long");
    const end = text.indexOf("\n");
    if (end >= 0) {
      socket.setTimeout(0);
      return text.slice(0, end);
    }
  }
  socket.setTimeout(0);
  return text;
}
