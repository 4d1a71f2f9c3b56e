import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { Transport } from "../api/transport.ts";
import { createAuthority, issue, type KeyPair } from "../kit/x509.ts";
import type { Connection } from "./connection.ts";
import { httpsTransport } from "./https-transport.ts";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const DAY_MS = 86_400_000;
const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS);
const authority = createAuthority({ commonName: "throw-away" }, daysAgo(400), 800);
const certificate = (names: string[], from = daysAgo(1), days = 30) =>
  issue(authority, { subject: { commonName: "server" }, usage: "server", names, notBefore: from, days });
const client = issue(authority, { subject: { commonName: "me" }, usage: "client", notBefore: daysAgo(1), days: 30 });

const open: { close(): void }[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.close();
});

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(server);
  return (server.address() as AddressInfo).port;
}

const ok: Handler = (_request, response) => response.end('{"ok":true}');

function tlsServer(pair: KeyPair, handler: Handler = ok, more: object = {}): Promise<number> {
  return listen(createHttpsServer({ cert: pair.certificate, key: pair.key, ...more }, handler));
}

function transportTo(server: string, over: Partial<Connection> = {}, options = {}): Transport {
  const tls = { ca: authority.certificate, insecure: false };
  const transport = httpsTransport({ server, tls, auth: { kind: "none" }, namespace: "default", ...over }, options);
  open.push(transport);
  return transport;
}

const get = (transport: Transport) => transport.request({ method: "GET", path: "/version" });

describe("a certificate", () => {
  it("that verifies is accepted, also under the name the kubeconfig gives it", async () => {
    const port = await tlsServer(certificate(["127.0.0.1", "kubernetes"]));
    expect(await (await get(transportTo(`https://127.0.0.1:${port}`))).text()).toBe('{"ok":true}');
    const named = { tls: { ca: authority.certificate, insecure: false, serverName: "kubernetes" } };
    expect((await get(transportTo(`https://127.0.0.1:${port}`, named))).status).toBe(200);
  });

  const BAD: [string, KeyPair, string, string][] = [
    [
      "of another authority",
      selfMade(),
      "CLUSTER_CERT_UNTRUSTED",
      "is not signed by an authority the kubeconfig trusts",
    ],
    ["for another host", certificate(["elsewhere.example"]), "CLUSTER_CERT_WRONG_HOST", "is for another host: "],
    ["that has expired", certificate(["127.0.0.1"], daysAgo(90), 30), "CLUSTER_CERT_EXPIRED", "has expired"],
    ["of tomorrow", certificate(["127.0.0.1"], daysAgo(-1), 30), "CLUSTER_CERT_NOT_YET_VALID", "is not valid yet"],
  ];

  it.each(BAD)("%s is refused with its own code and the fix", async (_what, pair, code, sentence) => {
    const port = await tlsServer(pair);
    const failure = get(transportTo(`https://127.0.0.1:${port}`));
    await expect(failure).rejects.toMatchObject({ code, exitCode: 69, fix: expect.any(String) });
    await expect(failure).rejects.toThrow(`the certificate of https://127.0.0.1:${port} ${sentence}`);
  });

  it("is not looked at when the kubeconfig says so", async () => {
    const port = await tlsServer(selfMade());
    expect((await get(transportTo(`https://127.0.0.1:${port}`, { tls: { insecure: true } }))).status).toBe(200);
  });

  it("of the client is shown to the server; one that does not fit its key is refused before connecting", async () => {
    const mutual = { ca: authority.certificate, requestCert: true, rejectUnauthorized: true };
    const port = await tlsServer(certificate(["127.0.0.1"]), ok, mutual);
    const server = `https://127.0.0.1:${port}`;
    const tls = { ca: authority.certificate, insecure: false, certificate: client.certificate, key: client.key };
    expect((await get(transportTo(server, { tls }))).status).toBe(200);
    await expect(get(transportTo(server))).rejects.toMatchObject({ code: "CLUSTER_CLIENT_CERT_REFUSED" });
    const mixed = { ...tls, key: authority.key };
    await expect(get(transportTo(server, { tls: mixed }))).rejects.toMatchObject({ code: "CLUSTER_CLIENT_CERT_BAD" });
  });
});

function selfMade(): KeyPair {
  const other = createAuthority({ commonName: "other" }, daysAgo(1), 30);
  const subject = { commonName: "server" };
  return issue(other, { subject, usage: "server", names: ["127.0.0.1"], notBefore: daysAgo(1), days: 30 });
}

describe("a server that is not there", () => {
  it("gives one sentence, a code and exit status 69, whatever the reason", async () => {
    const port = await closedPort();
    const refused = get(transportTo(`https://127.0.0.1:${port}`));
    await expect(refused).rejects.toMatchObject({ code: "CLUSTER_UNREACHABLE", exitCode: 69 });
    await expect(refused).rejects.toThrow(
      `cannot reach the API server https://127.0.0.1:${port}: nothing listens there (connection refused)`,
    );
    await expect(get(transportTo("https://no-such-host.invalid"))).rejects.toMatchObject({
      code: "CLUSTER_UNREACHABLE",
    });
  });

  it("is given up on when it accepts and then says nothing", async () => {
    const port = await listen(createTcpServer(() => {}));
    const silent = transportTo(`https://127.0.0.1:${port}`, {}, { connectTimeoutMs: 50 });
    await expect(get(silent)).rejects.toThrow("it did not answer in time");
    const plain = transportTo(`http://127.0.0.1:${port}`, {}, { answerTimeoutMs: 50 });
    await expect(get(plain)).rejects.toMatchObject({ code: "CLUSTER_UNREACHABLE" });
  });

  it("or speaks something else is named as such", async () => {
    const http = await listen(createHttpServer(ok));
    await expect(get(transportTo(`https://127.0.0.1:${http}`))).rejects.toMatchObject({ code: "CLUSTER_NOT_TLS" });
    const ssh = await listen(createTcpServer((socket) => void socket.end("SSH-2.0-other\r\n")));
    await expect(get(transportTo(`http://127.0.0.1:${ssh}`))).rejects.toMatchObject({ code: "CLUSTER_BAD_ANSWER" });
  });
});

async function closedPort(): Promise<number> {
  const server = createTcpServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe("a request", () => {
  it("carries path, query, headers and body, below the server's own path", async () => {
    const seen: unknown[] = [];
    const port = await listen(
      createHttpServer(async (request, response) => {
        let body = "";
        for await (const chunk of request) body += chunk;
        seen.push(request.method, request.url, request.headers["user-agent"], body);
        response.end();
      }),
    );
    await transportTo(`http://127.0.0.1:${port}/k8s/clusters/c1`).request({
      method: "POST",
      path: "/api/v1/things",
      query: { labelSelector: "a in (b,c)", left: undefined },
      headers: { "user-agent": "vendorctl" },
      body: '{"é":1}',
    });
    expect(seen).toEqual([
      "POST",
      "/k8s/clusters/c1/api/v1/things?labelSelector=a+in+%28b%2Cc%29",
      "vendorctl",
      '{"é":1}',
    ]);
  });

  it("impersonates with one header line per group", async () => {
    let raw: string[] = [];
    const port = await listen(
      createHttpServer((request, response) => {
        raw = request.rawHeaders;
        response.end();
      }),
    );
    const impersonate = { user: "jane", uid: "7", groups: ["dev", "ops, all"], extra: { scope: ["a", "b"] } };
    await get(transportTo(`http://127.0.0.1:${port}`, { impersonate }));
    const pairs = raw.flatMap((name, i) => (i % 2 === 0 && name.startsWith("impersonate") ? [[name, raw[i + 1]]] : []));
    expect(pairs).toEqual([
      ["impersonate-user", "jane"],
      ["impersonate-uid", "7"],
      ["impersonate-group", "dev"],
      ["impersonate-group", "ops, all"],
      ["impersonate-extra-scope", "a"],
      ["impersonate-extra-scope", "b"],
    ]);
  });

  it("ends with the caller's reason when its signal aborts, before, during and after the answer began", async () => {
    const port = await listen(createHttpServer((_request, response) => void response.write("first\n")));
    const transport = transportTo(`http://127.0.0.1:${port}`);
    const stop = new AbortController();
    const response = await transport.request({ method: "GET", path: "/", signal: stop.signal });
    const lines = response.lines()[Symbol.asyncIterator]();
    expect(await lines.next()).toEqual({ value: "first", done: false });
    const rest = lines.next();
    stop.abort(new Error("enough"));
    await expect(rest).rejects.toThrow("enough");
    await expect(transport.request({ method: "GET", path: "/", signal: stop.signal })).rejects.toThrow("enough");
  });

  it("that finds its kept-alive connection closed is sent again if it only reads", async () => {
    let requests = 0;
    const port = await listen(
      createHttpServer((request, response) => {
        requests++;
        // The second request on a connection meets a server that has just decided to close it.
        if (requests === 2) request.socket.destroy();
        else response.end("{}");
      }),
    );
    const transport = transportTo(`http://127.0.0.1:${port}`);
    await (await get(transport)).text();
    expect((await get(transport)).status).toBe(200);
    expect(requests).toBe(3);
  });
});

describe("lines of an answer", () => {
  async function linesOf(handler: Handler): Promise<string[]> {
    const port = await listen(createHttpServer(handler));
    const response = await get(transportTo(`http://127.0.0.1:${port}`));
    const lines: string[] = [];
    for await (const line of response.lines()) lines.push(line);
    return lines;
  }

  it("are cut at newlines however the bytes arrive", async () => {
    const bytes = Buffer.from('{"a":"é"}\n{"b":2}\n\n{"c":3}');
    const lines = await linesOf(async (_request, response) => {
      for (const byte of bytes) await new Promise((resolve) => response.write(Buffer.of(byte), resolve));
      response.end();
    });
    expect(lines).toEqual(['{"a":"é"}', '{"b":2}', "", '{"c":3}']);
  });

  it("that break off are an error, not an end", async () => {
    const broken = linesOf((request, response) => {
      response.write('{"a":1}\n{"b"');
      setImmediate(() => request.socket.destroy());
    });
    await expect(broken).rejects.toMatchObject({ code: "CLUSTER_CONNECTION_LOST" });
  });
});

describe("a proxy", () => {
  it("is asked for a tunnel and sees nothing else", async () => {
    const target = await tlsServer(certificate(["127.0.0.1"]));
    const asked: string[] = [];
    const proxy = createHttpServer();
    proxy.on("connect", (request, socket) => {
      asked.push(`${request.url} ${request.headers["proxy-authorization"]}`);
      const [host, port] = (request.url ?? "").split(":");
      const through = connect(Number(port), host, () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        socket.pipe(through).pipe(socket);
      });
      socket.on("error", () => through.destroy());
      through.on("error", () => socket.destroy());
    });
    const port = await listen(proxy);
    const transport = transportTo(`https://127.0.0.1:${target}`, { proxy: `http://me:secret@127.0.0.1:${port}` });
    expect(await (await get(transport)).text()).toBe('{"ok":true}');
    expect(asked).toEqual([`127.0.0.1:${target} Basic ${Buffer.from("me:secret").toString("base64")}`]);
  });

  it("that refuses, or is not there, is named", async () => {
    const proxy = createHttpServer();
    proxy.on("connect", (_request, socket) => socket.end("HTTP/1.1 403 Forbidden\r\n\r\n"));
    const port = await listen(proxy);
    const through = (at: number) => get(transportTo("https://10.0.0.1", { proxy: `http://127.0.0.1:${at}` }));
    await expect(through(port)).rejects.toThrow(`proxy http://127.0.0.1:${port} did not connect us: it answered 403`);
    await expect(through(await closedPort())).rejects.toMatchObject({ code: "CLUSTER_PROXY_REFUSED", exitCode: 69 });
  });
});
