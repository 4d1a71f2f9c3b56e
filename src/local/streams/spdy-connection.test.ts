import { once } from "node:events";
import { Duplex, PassThrough } from "node:stream";
import { constants, createDeflate, type Deflate, inflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { SpdyConnection, type SpdyStream } from "./spdy-connection.ts";
import { SPDY_DICTIONARY } from "./spdy-dictionary.ts";

/** Two ends of a connection in memory. */
function pair(): { server: Duplex; client: { out: PassThrough; in: PassThrough } } {
  const [toServer, toClient] = [new PassThrough(), new PassThrough()];
  return { server: Duplex.from({ readable: toServer, writable: toClient }), client: { out: toServer, in: toClient } };
}

/** A client's half, as Kubernetes' own does it: headers compressed in one stream with the dictionary. */
class Client {
  readonly #deflate: Deflate = createDeflate({ dictionary: SPDY_DICTIONARY, flush: constants.Z_SYNC_FLUSH });
  readonly #ends: ReturnType<typeof pair>["client"];

  constructor(ends: ReturnType<typeof pair>["client"]) {
    this.#ends = ends;
  }

  async open(id: number, headers: Record<string, string>): Promise<void> {
    const text = Object.entries(headers).flatMap(([name, value]) => [counted(name), counted(value)]);
    const block = Buffer.concat([number(Object.keys(headers).length), ...text]);
    const written = new Promise((done) => this.#deflate.write(block, done));
    await written;
    const compressed = this.#deflate.read() as Buffer;
    const body = Buffer.concat([number(id), number(0), Buffer.alloc(2), compressed]);
    this.#ends.out.write(Buffer.concat([head(0x80030001, 0, body.length), body]));
  }

  send(id: number, text: string, end = false): void {
    this.#ends.out.write(Buffer.concat([head(id, end ? 1 : 0, text.length), Buffer.from(text)]));
  }

  ping(): void {
    this.#ends.out.write(Buffer.concat([head(0x80030006, 0, 4), number(7)]));
  }

  async frame(): Promise<{ first: number; flags: number; body: Buffer }> {
    const start = await this.#bytes(8);
    const body = await this.#bytes(start.readUIntBE(5, 3));
    return { first: start.readUInt32BE(0), flags: start[4] as number, body };
  }

  async #bytes(count: number): Promise<Buffer> {
    if (count === 0) return Buffer.alloc(0);
    for (;;) {
      const read = this.#ends.in.read(count) as Buffer | null;
      if (read) return read;
      await once(this.#ends.in, "readable");
    }
  }
}

function head(first: number, flags: number, length: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32BE(first >>> 0, 0);
  bytes[4] = flags;
  bytes.writeUIntBE(length, 5, 3);
  return bytes;
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function counted(text: string): Buffer {
  return Buffer.concat([number(text.length), Buffer.from(text)]);
}

describe("streams over one connection", () => {
  it("opens what the client asks for, by its headers, and carries bytes both ways", async () => {
    const { server, client: ends } = pair();
    const streams: SpdyStream[] = [];
    const connection = new SpdyConnection(server, (stream) => streams.push(stream));
    const client = new Client(ends);

    await client.open(1, { streamtype: "error" });
    const reply = await client.frame();
    expect(reply.first).toBe(0x80030002);
    expect(reply.body.readUInt32BE(0)).toBe(1);
    const flushed = { dictionary: SPDY_DICTIONARY, finishFlush: constants.Z_SYNC_FLUSH };
    expect(inflateSync(reply.body.subarray(4), flushed)).toEqual(number(0));
    await client.open(3, { streamtype: "stdin", port: "80" });
    expect((await client.frame()).body.readUInt32BE(0)).toBe(3);
    expect(streams.map(({ headers }) => headers)).toEqual([
      { streamtype: "error" },
      { streamtype: "stdin", port: "80" },
    ]);

    client.send(3, "hello", true);
    const heard: string[] = [];
    await once(
      (streams[1] as SpdyStream).on("data", (chunk) => heard.push(String(chunk))),
      "end",
    );
    expect(heard).toEqual(["hello"]);

    streams[0]?.end("done");
    expect(await client.frame()).toMatchObject({ first: 1, flags: 0, body: Buffer.from("done") });
    expect(await client.frame()).toMatchObject({ first: 1, flags: 1 });
    client.ping();
    expect(await client.frame()).toMatchObject({ first: 0x80030006, body: number(7) });
    connection.close();
    expect((await client.frame()).first).toBe(0x80030007);
    ends.out.end();
    await connection.closed;
  });
});
