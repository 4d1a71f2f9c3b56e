import type { ServerResponse } from "node:http";
import type { Reply, Sink } from "./call.ts";

/** Up to this size an answer and its head leave in one write, which is what costs most of a small request. */
const ONE_WRITE = 16 * 1024;
/** A long answer goes out in pieces of this size, the next when the last has left: other requests get their turn, and memory stays flat. */
const PIECE = 128 * 1024;
/** A watcher with this much unsent is not reading. */
const UNSENT_LIMIT = 16 * 1024 * 1024;

/** Answers a request. `signal` is asked for only by streams. */
export function sendReply(response: ServerResponse, reply: Reply, signal: () => AbortSignal): void {
  if (response.destroyed) return;
  const headers: Record<string, string | number> = { "content-type": "application/json", ...reply.headers };
  if (reply.stream) {
    response.writeHead(reply.status, headers);
    response.flushHeaders();
    reply.stream(sinkOf(response, signal()));
    return;
  }
  const { body = "" } = reply;
  if (typeof body === "string") {
    headers["content-length"] = Buffer.byteLength(body);
    response.writeHead(reply.status, headers);
    response.end(body);
    return;
  }
  const size = body.reduce((sum, part) => sum + part.length, 0);
  headers["content-length"] = size;
  response.writeHead(reply.status, headers);
  // As text of one byte a letter, because Node joins only text with the head.
  if (size <= ONE_WRITE) response.end(joined(body, size).toString("latin1"), "latin1");
  else void sendInPieces(response, body);
}

function joined(parts: readonly Buffer[], size: number): Buffer {
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts, size);
}

/** All pieces are made in one buffer, each when the last has left, or a long list would leave its whole length behind as garbage. */
async function sendInPieces(response: ServerResponse, parts: readonly Buffer[]): Promise<void> {
  const piece = Buffer.allocUnsafeSlow(PIECE);
  let filled = 0;
  for (const part of parts) {
    for (let from = 0; from < part.length; ) {
      const copied = part.copy(piece, filled, from);
      from += copied;
      filled += copied;
      if (filled < PIECE) continue;
      if (!(await written(response, piece))) return;
      filled = 0;
    }
  }
  response.end(piece.subarray(0, filled));
}

/** Resolves when the bytes are sent; false when the client has left. */
function written(response: ServerResponse, bytes: Buffer): Promise<boolean> {
  return new Promise((resolve) => {
    const left = () => resolve(false);
    response.once("close", left);
    response.write(bytes, (error) => {
      response.off("close", left);
      resolve(!error);
    });
  });
}

const NOW = Promise.resolve();

/** Resolves when the buffer has space again, or the client has left. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.on("drain", done);
    response.on("close", done);
  });
}

function sinkOf(response: ServerResponse, signal: AbortSignal): Sink {
  return {
    signal,
    write: (chunk) => {
      if (response.destroyed || response.writableEnded) return false;
      response.write(typeof chunk === "string" ? chunk : chunk.length === 1 ? chunk[0]! : Buffer.concat(chunk));
      return response.writableLength < UNSENT_LIMIT;
    },
    writable: () => (response.writableNeedDrain ? drained(response) : NOW),
    end: () => {
      if (!response.writableEnded) response.end();
    },
  };
}
