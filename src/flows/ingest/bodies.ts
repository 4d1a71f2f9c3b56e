import type { ServerHttp2Stream } from "node:http2";

/** What is held of all bodies together while they are read. */
const HELD_LIMIT = 128 * 1024 * 1024;
/** How long one may take to arrive, however many bytes come meanwhile. */
const ARRIVES_MS = 60_000;

/** Why a body was not read: what its sender is answered. */
export class BodyRefused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

interface Reading {
  /** The connection it comes by. */
  from: object;
  held: number;
  refuse(why: BodyRefused): void;
}

/** Bodies of all clients that are being read. None waits for another: where they hold too much together, the client that holds most is refused. */
export class Bodies {
  /** In the order they began. */
  readonly #reading = new Set<Reading>();
  #held = 0;

  /** Reads a body of at most so many bytes, and holds it until `use` is done. */
  async use<T>(stream: ServerHttp2Stream, limit: number, use: (text: string) => Promise<T>): Promise<T> {
    const reading: Reading = { from: stream.session ?? stream, held: 0, refuse: () => {} };
    this.#reading.add(reading);
    try {
      return await use(await this.#read(stream, limit, reading));
    } finally {
      this.#reading.delete(reading);
      this.#held -= reading.held;
      // What still comes is let pass by.
      stream.resume();
    }
  }

  #read(stream: ServerHttp2Stream, limit: number, reading: Reading): Promise<string> {
    return new Promise<string>((resolve, reject) => {
      let chunks: Buffer[] = [];
      const late = setTimeout(
        () => reading.refuse(new BodyRefused(408, "the batch took too long to arrive")),
        ARRIVES_MS,
      );
      const settle = (how: () => void) => {
        clearTimeout(late);
        stream.off("data", take);
        chunks = [];
        how();
      };
      const take = (chunk: Buffer) => {
        chunks.push(chunk);
        reading.held += chunk.length;
        this.#held += chunk.length;
        if (reading.held > limit) reading.refuse(new BodyRefused(413, `a batch has at most ${limit} bytes`));
        else if (this.#held > HELD_LIMIT) this.#refuseLargest();
      };
      const end = () => {
        const text = Buffer.concat(chunks).toString("utf8");
        settle(() => resolve(text));
      };
      reading.refuse = (why) => settle(() => reject(why));
      stream.on("data", take);
      stream.once("end", end);
      stream.once("close", () => reading.refuse(new BodyRefused(400, "the client left")));
      if (stream.closed || stream.destroyed) reading.refuse(new BodyRefused(400, "the client left"));
    });
  }

  #refuseLargest(): void {
    const held = new Map<object, number>();
    for (const reading of this.#reading) held.set(reading.from, (held.get(reading.from) ?? 0) + reading.held);
    const [largest] = [...held].sort((a, b) => b[1] - a[1])[0] ?? [];
    const oldest = [...this.#reading].find(({ from, held: bytes }) => from === largest && bytes > 0);
    oldest?.refuse(new BodyRefused(503, "too much is being sent at once, send it again"));
  }
}
