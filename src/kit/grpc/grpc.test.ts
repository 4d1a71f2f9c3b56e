import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { listenAtSocket } from "../unix-socket.ts";
import { type GrpcClient, grpcClient } from "./grpc-client.ts";
import { GRPC_STATUS, GrpcError } from "./grpc-frames.ts";
import {
  type AnswerStream,
  duplex,
  type GrpcLimits,
  type GrpcMethods,
  grpcServer,
  streaming,
  unary,
} from "./grpc-server.ts";
import { grpcStream } from "./grpc-session.ts";
import { bytes, decode, encode, int, text } from "./protobuf.ts";

const WORD = { word: text(1) };
const TABLES = [WORD, WORD] as const;

describe("gRPC over a unix socket", () => {
  const ends: (() => void)[] = [];
  afterEach(() => {
    for (const end of ends.splice(0).reverse()) end();
  });

  async function served(
    methods: GrpcMethods,
    limits?: Partial<GrpcLimits>,
  ): Promise<{ path: string; client: GrpcClient }> {
    const directory = mkdtempSync(join(tmpdir(), "grpc-"));
    // Longer than the path of a socket may be.
    const path = join(directory, "a".repeat(120), "socket");
    const { server, close } = grpcServer(methods, limits);
    await listenAtSocket(server, path, 0o600);
    const short = join(directory, "s");
    symlinkSync(path, short);
    const client = grpcClient(short);
    ends.push(
      () => rmSync(directory, { recursive: true }),
      close,
      () => client.close(),
    );
    return { path: short, client };
  }
  const echo = { "a.B/Echo": unary(...TABLES, ({ word }) => ({ word })) };
  const ask = (client: GrpcClient, word: string, method = "a.B/Echo") => client.call(method, TABLES, { word }, 5_000);

  it("answers a call; what fails says so with its status", async () => {
    const { client } = await served({
      ...echo,
      "a.B/Refuse": unary(...TABLES, () => {
        throw new GrpcError(GRPC_STATUS.invalidArgument, "not “this”");
      }),
      "a.B/Break": unary(...TABLES, () => {
        throw new Error("a secret");
      }),
    });
    expect(await ask(client, "hello")).toEqual({ word: "hello" });
    await expect(ask(client, "", "a.B/Refuse")).rejects.toMatchObject({ status: 3, message: "not “this”" });
    await expect(ask(client, "", "a.B/Break")).rejects.toMatchObject({ status: 13, message: "the call failed" });
    await expect(ask(client, "", "a.B/None")).rejects.toMatchObject({ status: 12 });
  });

  it("streams answers until one side ends it", async () => {
    let answers: AnswerStream<{ word?: string }> | undefined;
    const method = streaming(...TABLES, ({ word }, stream) => {
      answers = stream;
      stream.send({ word: `${word} 1` });
      stream.send({ word: `${word} 2` });
    });
    const { client } = await served({ "a.B/Follow": method });
    const got: string[] = [];
    const take = ({ word }: { word: string }) => {
      if (got.push(word) !== 2) return;
      answers?.send({ word: "x 3" });
      answers?.end();
    };
    await client.stream("a.B/Follow", TABLES, { word: "x" }, take, new AbortController().signal);
    expect(got).toEqual(["x 1", "x 2", "x 3"]);
  });

  it("bounds a request: one that is too long, not whole, compressed or no message is refused, and the next call is answered", async () => {
    const { client, path } = await served(echo, { messageBytes: 1_000 });
    await expect(ask(client, "x".repeat(2_000))).rejects.toMatchObject({ status: 8 });
    const send = (content: Buffer) =>
      new Promise<string>((resolve) => {
        const session = connectHttp2("http://localhost", { createConnection: () => connect(path) });
        session.on("error", () => undefined);
        const stream = session.request({ ":method": "POST", ":path": "/a.B/Echo" });
        let status = "";
        stream.on("response", (headers) => {
          status = String(headers["grpc-status"]);
        });
        stream.on("error", () => undefined);
        stream.on("close", () => {
          session.destroy();
          resolve(status);
        });
        stream.end(content);
      });
    expect(await send(Buffer.from([0, 0, 0, 0, 9, 1]))).toBe("3");
    expect(await send(Buffer.from([1, 0, 0, 0, 1, 1]))).toBe("12");
    expect(await send(Buffer.from([0, 0, 0, 0, 2, 0x0a, 0x7f]))).toBe("3");
    // A field that is sent as another type.
    expect(await send(Buffer.from([0, 0, 0, 0, 2, 0x08, 1]))).toBe("3");
    expect(await ask(client, "again")).toEqual({ word: "again" });
  });

  it("bounds connections: idle ones make way, and garbage ends its own alone", async () => {
    const { client, path } = await served(echo, { connections: 3 });
    const idle: Socket[] = [];
    for (let index = 0; index < 20; index++) {
      const socket = connect(path);
      socket.on("error", () => undefined);
      idle.push(socket);
      if (index % 2) socket.write(Buffer.alloc(5_000, index));
    }
    ends.push(() => {
      for (const socket of idle) socket.destroy();
    });
    expect(await ask(client, "still")).toEqual({ word: "still" });
  });

  it("bounds calls of a connection, and ends the one whose request does not come", async () => {
    const { path, client } = await served(echo, { streams: 2, callMs: 50 });
    const session = connectHttp2("http://localhost", { createConnection: () => connect(path) });
    session.on("error", () => undefined);
    ends.push(() => session.destroy());
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    expect(session.remoteSettings.maxConcurrentStreams).toBe(2);
    const stream = session.request({ ":method": "POST", ":path": "/a.B/Echo" });
    stream.on("error", () => undefined);
    stream.write(Buffer.from([0, 0]));
    await new Promise((resolve) => stream.on("close", resolve));
    expect(await ask(client, "next")).toEqual({ word: "next" });
  });

  it("reads many small parts, and several messages in one", async () => {
    const { client } = await served({
      "a.B/Long": unary({ raw: bytes(1) }, { count: int(1) }, ({ raw }) => ({ count: raw.length })),
    });
    const raw = Buffer.alloc(50_000, 7);
    expect(await client.call("a.B/Long", [{ raw: bytes(1) }, { count: int(1) }], { raw }, 5_000)).toEqual({
      count: 50_000,
    });
  });

  it("answers each request of a call with many, and says why it ends one", async () => {
    const method = duplex(...TABLES, {
      idleMs: 10_000,
      open: () => (requests) =>
        requests.map(({ word }) => {
          if (word === "bad") throw new GrpcError(GRPC_STATUS.invalidArgument, "not this word");
          return { word: word.toUpperCase() };
        }),
    });
    const { path } = await served({ "a.B/Talk": method }, { messageBytes: 1_000 });
    const talk = () => {
      const session = connectHttp2("http://localhost", { createConnection: () => connect(path) });
      session.on("error", () => undefined);
      ends.push(() => session.destroy());
      const got: string[] = [];
      const onMessage = (message: Buffer) => void got.push(decode(WORD, message).word);
      return { got, call: grpcStream({ session, path: "/a.B/Talk", onMessage }) };
    };
    const { got, call } = talk();
    for (let index = 0; index < 999; index++) call.send(encode(WORD, { word: `word ${index}` }));
    call.sendLast(encode(WORD, { word: "last" }));
    expect(await call.ended).toBeUndefined();
    expect([got.length, got[0], got.at(-1)]).toEqual([1_000, "WORD 0", "LAST"]);
    const refused = talk();
    refused.call.send(encode(WORD, { word: "good" }));
    await expect.poll(() => refused.got).toEqual(["GOOD"]);
    refused.call.send(encode(WORD, { word: "bad" }));
    expect(await refused.call.ended).toMatchObject({ status: 3, message: "not this word" });
    const long = talk();
    long.call.send(encode(WORD, { word: "x".repeat(2_000) }));
    expect(await long.call.ended).toMatchObject({ status: 8 });
  });
});
