import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { fakeClock } from "../kit/fake-clock.ts";
import type { Auth, ExecPlugin } from "./connection.ts";
import { credentialsOf } from "./credentials.ts";
import { httpsTransport } from "./https-transport.ts";

const dir = mkdtempSync(join(tmpdir(), "credentials-"));
afterAll(() => rmSync(dir, { recursive: true }));

const V1 = "client.authentication.k8s.io/v1" as const;
let scripts = 0;

/** A plugin that counts its runs and prints what `print` (a shell word, `$N` is the run) says. */
function plugin(print: string, over: Partial<ExecPlugin> = {}): ExecPlugin & { runs(): number; told(): unknown } {
  const base = join(dir, `plugin-${++scripts}`);
  const script = `#!/bin/sh
N=$(($(cat ${base}.runs 2>/dev/null || echo 0) + 1)); echo $N > ${base}.runs
printf %s "$KUBERNETES_EXEC_INFO" > ${base}.info
${print}
`;
  writeFileSync(base, script);
  chmodSync(base, 0o755);
  return {
    apiVersion: V1,
    command: base,
    args: [],
    env: { PATH: process.env["PATH"] },
    interactiveMode: "IfAvailable",
    terminal: false,
    runs: () => Number(readFileSync(`${base}.runs`, "utf8")),
    told: () => JSON.parse(readFileSync(`${base}.info`, "utf8")),
    ...over,
  };
}

const credential = (status: string) => `echo '{"apiVersion":"${V1}","kind":"ExecCredential","status":${status}}'`;
const connection = (auth: Auth, server = "https://unused") => ({
  server,
  tls: { insecure: false },
  auth,
  namespace: "default",
});

describe("credentials that do not change", () => {
  it("are a token, a name and password, or nothing", async () => {
    const of = (auth: Auth) => credentialsOf(connection(auth)).current();
    expect(await of({ kind: "token", token: "t" })).toEqual({ authorization: "Bearer t" });
    expect(await of({ kind: "basic", username: "u", password: "p" })).toEqual({ authorization: "Basic dTpw" });
    expect(await of({ kind: "none" })).toEqual({});
  });
});

describe("a token file", () => {
  it("is read again after a minute, and its absence is said", async () => {
    const clock = fakeClock();
    const path = join(dir, "token");
    writeFileSync(path, "one\n");
    const credentials = credentialsOf(connection({ kind: "tokenFile", path }), clock);
    expect(await credentials.current()).toEqual({ authorization: "Bearer one" });
    writeFileSync(path, "two\n");
    expect(await credentials.current()).toEqual({ authorization: "Bearer one" });
    await clock.advance(60_000);
    expect(await credentials.current()).toEqual({ authorization: "Bearer two" });
    const missing = credentialsOf(connection({ kind: "tokenFile", path: join(dir, "none") }));
    await expect(missing.current()).rejects.toMatchObject({ code: "KUBECONFIG_UNREADABLE" });
  });
});

describe("a credential plugin", () => {
  it("is run once for many requests, and again shortly before its credential ends", async () => {
    const clock = fakeClock(Date.parse("2026-01-01T00:00:00Z"));
    const exec = plugin(`${credential('{"token":"t\'$N\'","expirationTimestamp":"2026-01-01T01:00:00Z"}')}`);
    const credentials = credentialsOf(connection({ kind: "exec", plugin: exec }), clock);
    const [a, b] = await Promise.all([credentials.current(), credentials.current()]);
    expect([a, b]).toEqual([{ authorization: "Bearer t1" }, { authorization: "Bearer t1" }]);
    await clock.advance(3_589_000);
    expect(await credentials.current()).toBe(a);
    await clock.advance(1_000);
    expect(await credentials.current()).toEqual({ authorization: "Bearer t2" });
    expect(exec.runs()).toBe(2);
  });

  it("is told the version it must speak, whether it may ask, and the cluster if it wants to know", async () => {
    const exec = plugin(credential('{"token":"t"}'), { cluster: { server: "https://c" } });
    await credentialsOf(connection({ kind: "exec", plugin: exec })).current();
    expect(exec.told()).toEqual({
      apiVersion: V1,
      kind: "ExecCredential",
      spec: { interactive: false, cluster: { server: "https://c" } },
    });
  });

  it("may give a client certificate", async () => {
    const exec = plugin(credential('{"clientCertificateData":"CERT","clientKeyData":"KEY"}'));
    const identity = await credentialsOf(connection({ kind: "exec", plugin: exec })).current();
    expect(identity).toEqual({ certificate: "CERT", key: "KEY" });
  });

  it("is run again when the server refuses what it gave, once per request", async () => {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers.authorization ?? "");
      response.writeHead(request.headers.authorization === "Bearer t2" ? 200 : 401).end("{}");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const exec = plugin(`${credential('{"token":"t\'$N\'"}')}`);
    const transport = httpsTransport(connection({ kind: "exec", plugin: exec }, url));
    expect((await transport.request({ method: "GET", path: "/" })).status).toBe(200);
    expect((await transport.request({ method: "GET", path: "/" })).status).toBe(200);
    expect(seen).toEqual(["Bearer t1", "Bearer t2", "Bearer t2"]);
    transport.close();
    server.close();
  });

  const FAILURES: [string, ExecPlugin, string, string][] = [
    ["fails", plugin("echo working >&2; echo 'not logged in' >&2; exit 3"), "EXEC_PLUGIN_FAILED", "not logged in"],
    ["fails silently", plugin("exit 3"), "EXEC_PLUGIN_FAILED", "it ended with status 3"],
    ["prints nonsense", plugin("echo hello"), "EXEC_PLUGIN_FAILED", "not JSON"],
    ["prints something else", plugin("echo '{}'"), "EXEC_PLUGIN_FAILED", "not an ExecCredential"],
    ["prints nothing useful", plugin(credential("{}")), "EXEC_PLUGIN_FAILED", "no credential"],
    [
      "speaks another version",
      plugin(credential('{"token":"t"}'), { apiVersion: "client.authentication.k8s.io/v1beta1" }),
      "EXEC_PLUGIN_FAILED",
      `it speaks ${V1}, not client.authentication.k8s.io/v1beta1`,
    ],
    [
      "must ask and cannot",
      plugin(credential('{"token":"t"}'), { interactiveMode: "Always" }),
      "EXEC_PLUGIN_NEEDS_TERMINAL",
      "there is no terminal",
    ],
    [
      "is not installed",
      plugin("", { command: "no-such-plugin", installHint: "get it at\n  example.com" }),
      "EXEC_PLUGIN_MISSING",
      "no-such-plugin is not installed",
    ],
  ];

  it.each(FAILURES)("that %s is explained", async (_what, exec, code, sentence) => {
    const failure = credentialsOf(connection({ kind: "exec", plugin: exec })).current();
    await expect(failure).rejects.toMatchObject({ code });
    await expect(failure).rejects.toThrow(sentence);
    if (exec.installHint) await expect(failure).rejects.toMatchObject({ fix: "get it at example.com" });
  });
});
