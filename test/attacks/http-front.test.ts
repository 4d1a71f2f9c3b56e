import type { Server } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { HealthCheckPorts } from "../../src/agent/health-check-ports.ts";
import { serveProxyHealth } from "../../src/agent/kube-proxy-health.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { healthServer, metricsServer } from "../../src/kit/health-server.ts";
import { httpFront } from "../../src/kit/http-front.ts";
import { silentLog } from "../../src/kit/log.ts";
import { closed, type RawPort, rawPort } from "./raw-http.ts";

const started: Server[] = [];
afterEach(() => {
  for (const server of started.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

function serve(server: Server): Promise<RawPort> {
  started.push(server);
  return rawPort(server);
}

const get = (target: string, more = "") => `GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${more}\r\n`;

async function healthCheckPort(): Promise<Server> {
  let made: Server | undefined;
  const ports = new HealthCheckPorts({
    listen: async (server) => {
      made = server;
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    },
    healthy: () => true,
    log: silentLog,
  });
  await ports.update(new Map([[30_000, { namespace: "shop", name: "web", localEndpoints: 1 }]]));
  return made as Server;
}

function proxyHealthPort(): Promise<Server> {
  return new Promise((resolve) => {
    void serveProxyHealth({
      state: () => ({ lastUpdated: 0, healthy: true, nodeEligible: true }),
      listen: async (server) => resolve(server),
      clock: systemClock,
      log: silentLog,
      signal: new AbortController().signal,
    });
  });
}

/** Each listener for health and metrics, with a target it answers 200. */
const LISTENERS: readonly [string, string, () => Server | Promise<Server>][] = [
  ["health of a program", "/readyz", () => healthServer({ ready: { api: () => undefined }, metrics: () => "up 1\n" })],
  ["metrics of a program", "/metrics", () => metricsServer(() => "up 1\n")],
  ["kube-proxy's health port", "/healthz", proxyHealthPort],
  ["the health-check port of a Service", "/", healthCheckPort],
];

/** Targets that a URL parser throws on, or understands in a way of its own. */
const HOSTILE_TARGETS = [
  ...[
    "//",
    "///",
    "//@",
    "//[",
    "//[::1",
    "http://",
    "http://[",
    "http:///",
    "*",
    "?",
    "#",
    "/%",
    "/%zz",
    "/..//..",
    "\\",
    ":",
    "/:/",
  ],
  ...[
    "//user:pass@:99999/",
    "http://a:b:c/",
    "/readyz//",
    "/readyz/__proto__",
    "/readyz/constructor",
    "/metrics/../..",
    "/\u00ff\u00fe",
  ],
];

describe.each(LISTENERS)("%s", (_, good, make) => {
  it.each(HOSTILE_TARGETS)("answers %j and goes on", async (target) => {
    const { send } = await serve(await make());
    expect(await send(get(target))).toMatch(/^HTTP\/1\.1 (200|400|404)/);
    expect(await send(get(good))).toMatch(/^HTTP\/1\.1 200/);
  });

  it.each([
    ["nothing of HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ["an unknown method", "BREW / HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["CONNECT", "CONNECT 10.0.0.1:443 HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["an upgrade", get("/", "upgrade: websocket\r\nconnection: upgrade\r\n")],
    ["two lengths", "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello"],
    [
      "a length and chunks",
      "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["a bad chunk", "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"],
    ["an expectation", get("/", "expect: 200-ok\r\n")],
    ["a line without end", `GET /${"a".repeat(100_000)}`],
    ["a hundred thousand headers", `GET / HTTP/1.1\r\n${"a: b\r\n".repeat(100_000)}\r\n`],
  ])("closes the connection of %s and goes on", async (_name, bytes) => {
    const { send } = await serve(await make());
    await send(bytes);
    expect(await send(get(good))).toMatch(/^HTTP\/1\.1 200/);
  });
});

describe("the HTTP front", () => {
  const ok = () => ({ status: 200, body: "ok" });

  it("refuses headers that are too large, with the status for it", async () => {
    const { send } = await serve(httpFront({ answer: ok }));
    expect(await send(get("/", `x: ${"y".repeat(20_000)}\r\n`))).toMatch(/^HTTP\/1\.1 431/);
  });

  it("closes a request that never ends", async () => {
    const limits = { headersMs: 100, requestMs: 200 };
    const { open } = await serve(httpFront({ answer: ok, limits }));
    await closed(await open("GET / HTTP/1.1\r\nhost: x\r\nx-half: "));
    await closed(await open("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf"));
    await closed(await open("GET"));
  });

  it("closes a connection on which nothing is asked", async () => {
    const { open } = await serve(httpFront({ answer: ok, limits: { headersMs: 100, requestMs: 100, idleMs: 100 } }));
    await closed(await open());
    const kept = await open("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await closed(kept);
  });

  it("lets the oldest connection go when there are too many, so that a load balancer is still answered", async () => {
    const { open, send } = await serve(httpFront({ answer: ok, limits: { connections: 8 } }));
    const slow = await Promise.all(Array.from({ length: 8 }, () => open("GET / HTTP/1.1\r\n")));
    expect(await send(get("/"))).toMatch(/^HTTP\/1\.1 200/);
    await Promise.race(slow.map(closed));
    expect(slow.filter(({ destroyed }) => !destroyed).length).toBeGreaterThanOrEqual(6);
  });

  it("answers 500 when the answer throws, 503 when it does not come, and logs the cause", async () => {
    const warned: string[] = [];
    const log = { warn: (_: object, message: string) => warned.push(message) };
    const throws = httpFront({
      log,
      answer: () => {
        throw new Error("a defect");
      },
    });
    expect(await (await serve(throws)).send(get("/"))).toMatch(/^HTTP\/1\.1 500[\s\S]*\ninternal error\n/);
    const rejects = httpFront({ log, answer: () => Promise.reject(new Error("a defect")) });
    expect(await (await serve(rejects)).send(get("/"))).toMatch(/^HTTP\/1\.1 500/);
    expect(warned).toHaveLength(2);
    const never = httpFront({ answer: () => new Promise(() => {}), limits: { answerMs: 50 } });
    expect(await (await serve(never)).send(get("/"))).toMatch(/^HTTP\/1\.1 503/);
  });

  it("survives a failure to accept", async () => {
    const warned: string[] = [];
    const server = httpFront({ answer: ok, log: { warn: (_: object, message: string) => warned.push(message) } });
    const { send } = await serve(server);
    server.emit("error", Object.assign(new Error("accept EMFILE"), { code: "EMFILE" }));
    expect(warned).toEqual(["a connection to the health port could not be accepted"]);
    expect(await send(get("/"))).toMatch(/^HTTP\/1\.1 200/);
  });

  it.each([
    ["/readyz?verbose", "/readyz", "verbose="],
    ["http://10.0.0.1:9099/livez#x", "/livez", ""],
    ["http://10.0.0.1", "/", ""],
    ["//", "//", ""],
    ["*", "*", ""],
  ])("reads %j as path %j with query %j", async (target, path, query) => {
    const front = httpFront({
      answer: (asked) => ({ status: 200, body: JSON.stringify([asked.path, String(asked.query)]) }),
    });
    expect(await (await serve(front)).send(get(target))).toContain(JSON.stringify([path, query]));
  });
});
