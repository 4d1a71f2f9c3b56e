import { Duplex } from "node:stream";
import { createInflate, type Inflate } from "node:zlib";
import { SPDY_DICTIONARY, SPDY_DICTIONARY_ID } from "./spdy-dictionary.ts";

const SYN_STREAM = 1;
const SYN_REPLY = 2;
const RST_STREAM = 3;
const PING = 6;
const GO_AWAY = 7;
const FIN = 1;
const CANCEL = 5;
const HEAD = 8;
const CONTROL = 0x80;
const VERSION = 3;
const ID_MASK = 0x7fffffff;
const LARGEST_PIECE = 32 * 1024;

/** What a client opened: named by its headers, both ways, half-closed from either side. */
export class SpdyStream extends Duplex {
  readonly headers: Readonly<Record<string, string>>;
  readonly #send: (type: "data" | "end" | "reset", bytes: Buffer, done: () => void) => void;

  constructor(
    headers: Readonly<Record<string, string>>,
    send: (type: "data" | "end" | "reset", bytes: Buffer, done: () => void) => void,
  ) {
    super({ allowHalfOpen: true });
    this.headers = headers;
    this.#send = send;
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#send("data", chunk, done);
  }

  override _final(done: () => void): void {
    this.#send("end", NOTHING, done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.writableFinished) this.#send("reset", NOTHING, () => undefined);
    done(error);
  }
}

const NOTHING = Buffer.alloc(0);
const FLUSHED = Buffer.from([0, 0, 0, 0xff, 0xff]);

/**
 * The server's end of SPDY/3.1 as Kubernetes' clients speak it over an upgraded connection: streams the client opens, no flow control, and
 * headers of which the server sends none.
 */
export class SpdyConnection {
  readonly #socket: Duplex;
  readonly #onStream: (stream: SpdyStream) => void;
  readonly #streams = new Map<number, SpdyStream>();
  readonly #inflate: Inflate = createInflate({ dictionary: SPDY_DICTIONARY });
  #saidAnything = false;
  /** Resolves when the other end is gone. */
  readonly closed: Promise<void>;

  constructor(socket: Duplex, onStream: (stream: SpdyStream) => void) {
    this.#socket = socket;
    this.#onStream = onStream;
    this.closed = this.#serve();
  }

  /** Says good-bye after everything that was written. */
  close(): void {
    const last = Buffer.alloc(8);
    this.#socket.end(control(GO_AWAY, 0, last));
  }

  async #serve(): Promise<void> {
    let rest: Buffer = NOTHING;
    try {
      for await (const chunk of this.#socket) {
        rest = Buffer.concat([rest, chunk as Buffer]);
        for (let frame = frameIn(rest); frame; frame = frameIn(rest)) {
          rest = rest.subarray(frame.length);
          await this.#take(frame);
        }
      }
    } catch {
      // A connection that breaks is over like any other.
    } finally {
      this.#inflate.close();
      for (const stream of this.#streams.values()) stream.destroy();
      this.#socket.destroy();
    }
  }

  async #take(frame: Frame): Promise<void> {
    const { type, flags, body } = frame;
    if (type === "data") {
      const stream = this.#streams.get(frame.stream);
      if (body.length > 0) stream?.push(body);
      if (flags & FIN) stream?.push(null);
      return;
    }
    if (type === SYN_STREAM) await this.#open(body, flags);
    else if (type === PING) this.#socket.write(control(PING, 0, body));
    else if (type === RST_STREAM) this.#streams.get(body.readUInt32BE(0) & ID_MASK)?.destroy();
  }

  async #open(body: Buffer, flags: number): Promise<void> {
    const id = body.readUInt32BE(0) & ID_MASK;
    // After the number come the one it belongs to, its priority and a slot: none of them mean anything here.
    const headers = parseHeaders(await this.#inflated(body.subarray(10)));
    const stream = new SpdyStream(headers, (what, bytes, done) => this.#send(id, what, bytes, done));
    stream.once("close", () => this.#streams.delete(id)).on("error", () => undefined);
    this.#streams.set(id, stream);
    this.#socket.write(control(SYN_REPLY, 0, Buffer.concat([number(id), this.#noHeaders()])));
    if (flags & FIN) stream.push(null);
    this.#onStream(stream);
  }

  #send(id: number, what: "data" | "end" | "reset", bytes: Buffer, done: () => void): void {
    if (this.#socket.destroyed || this.#socket.writableEnded) {
      done();
      return;
    }
    if (what === "reset") {
      this.#socket.write(control(RST_STREAM, 0, Buffer.concat([number(id), number(CANCEL)])), () => done());
      return;
    }
    const pieces: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += LARGEST_PIECE) pieces.push(bytes.subarray(at, at + LARGEST_PIECE));
    if (what === "end") pieces.push(NOTHING);
    const frames = pieces.map((piece) => data(id, what === "end" ? FIN : 0, piece));
    this.#socket.write(Buffer.concat(frames), () => done());
  }

  /** All headers of a connection are one compressed stream, so what was before must have been read. */
  #inflated(bytes: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const parts: Buffer[] = [];
      const take = (part: Buffer) => parts.push(part);
      this.#inflate.on("data", take).once("error", reject);
      this.#inflate.write(bytes, () => {
        this.#inflate.off("data", take).off("error", reject);
        resolve(Buffer.concat(parts));
      });
    });
  }

  /**
   * No headers, in a stream that compresses nothing: the head once, then a stored block each time, and an empty one behind it, which is how
   * a reader knows that it need not wait for more.
   */
  #noHeaders(): Buffer {
    const count = number(0);
    const block = Buffer.from([0, count.length, 0, 0xff - count.length, 0xff]);
    const head = this.#saidAnything ? NOTHING : Buffer.concat([Buffer.from([0x78, 0xbb]), number(SPDY_DICTIONARY_ID)]);
    this.#saidAnything = true;
    return Buffer.concat([head, block, count, FLUSHED]);
  }
}

interface Frame {
  /** Of all of it. */
  length: number;
  type: number | "data";
  stream: number;
  flags: number;
  body: Buffer;
}

function frameIn(bytes: Buffer): Frame | undefined {
  if (bytes.length < HEAD) return undefined;
  const size = bytes.readUIntBE(5, 3);
  if (bytes.length < HEAD + size) return undefined;
  const isControl = (bytes[0]! & CONTROL) !== 0;
  return {
    length: HEAD + size,
    type: isControl ? bytes.readUInt16BE(2) : "data",
    stream: isControl ? 0 : bytes.readUInt32BE(0) & ID_MASK,
    flags: bytes[4]!,
    body: bytes.subarray(HEAD, HEAD + size),
  };
}

function control(type: number, flags: number, body: Buffer): Buffer {
  const head = Buffer.alloc(HEAD);
  head.writeUInt16BE(0x8000 | VERSION, 0);
  head.writeUInt16BE(type, 2);
  head[4] = flags;
  head.writeUIntBE(body.length, 5, 3);
  return Buffer.concat([head, body]);
}

function data(stream: number, flags: number, body: Buffer): Buffer {
  const head = Buffer.alloc(HEAD);
  head.writeUInt32BE(stream, 0);
  head[4] = flags;
  head.writeUIntBE(body.length, 5, 3);
  return Buffer.concat([head, body]);
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Names are lower-case; a name with several values has them behind each other with a zero between. */
function parseHeaders(block: Buffer): Record<string, string> {
  const headers: Record<string, string> = {};
  let at = 4;
  const text = () => {
    const length = block.readUInt32BE(at);
    at += 4 + length;
    return block.toString("utf8", at - length, at);
  };
  for (let left = block.readUInt32BE(0); left > 0; left--) {
    const name = text();
    headers[name.toLowerCase()] = text().split("\0")[0] ?? "";
  }
  return headers;
}
