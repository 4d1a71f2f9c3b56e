import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../../src/cluster/client.ts";
import { clusterEnv } from "../../src/cluster/config.ts";
import { httpsTransport } from "../../src/cluster/https-transport.ts";
import { EVENTS, SECRETS } from "../../src/cluster/kinds.ts";
import { loadConnection } from "../../src/cluster/kubeconfig.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { openLog } from "../../src/kit/log.ts";
import { applyObjectsStep } from "../../src/procedures/plans/steps.ts";
import { rollbackRun, startRun } from "../../src/procedures/run/engine.ts";
import { localCopyIn } from "../../src/procedures/run/local-copy.ts";
import { logLine, planOf } from "../../src/procedures/testing/bare-cluster.ts";
import { type Api, namespace, startApi } from "../support/api.ts";

const TOKEN = "planted-token-d41d8cd98f00b204";
const PASSWORD = "planted-password-e9800998ecf8427e";
const user = { name: "admin", groups: ["system:masters", "system:authenticated"] };

/** Any spelling in which a secret would still be one. */
function holds(text: string, secret: string): boolean {
  return text.includes(secret) || text.includes(Buffer.from(secret).toString("base64").replace(/=+$/, ""));
}

function kubeconfigOf(server: string, token: string): string {
  return JSON.stringify({
    "current-context": "a",
    clusters: [{ name: "a", cluster: { server } }],
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
    users: [{ name: "a", user: { token } }],
  });
}

describe("a planted token and password", () => {
  let api: Api;
  let directory: string;
  const printed: string[] = [];
  beforeAll(async () => {
    api = await startApi({ staticTokens: new Map([[TOKEN, user]]) });
    await api.create("/api/v1/namespaces", namespace("kube-system"));
    directory = mkdtempSync(join(tmpdir(), "secrets-"));
    const kubeconfig = join(directory, "config");
    writeFileSync(kubeconfig, kubeconfigOf(api.url, TOKEN));
    const client = createClient(httpsTransport(loadConnection({ kubeconfig }, clusterEnv({}, false))), {
      userAgent: "vendorctl",
    });
    const secret = (password: string) => {
      const data = { password: Buffer.from(password).toString("base64") };
      const object = { apiVersion: "v1", kind: "Secret", metadata: { name: "keys", namespace: "default" }, data };
      const annotations = { "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify(object) };
      return { ...object, metadata: { ...object.metadata, annotations } };
    };
    await client.create(SECRETS, secret(PASSWORD));
    const engine = {
      client,
      clock: systemClock,
      files: { from: "nowhere", read: async (name: string) => name },
      tools: { find: async () => undefined, run: async () => ({ exitCode: 0, stdout: "", stderr: "" }) },
      tool: "v3.31.3",
      local: localCopyIn(join(directory, "state"), (error) => printed.push(String(error))),
      signal: new AbortController().signal,
    };
    const plan = planOf([applyObjectsStep(logLine("change"), { objects: [secret(`${PASSWORD}-2`)] })]);
    for await (const event of startRun(engine, plan)) printed.push(JSON.stringify(event));
    for await (const event of rollbackRun(engine)) printed.push(JSON.stringify(event));
    printed.push(JSON.stringify((await client.list(EVENTS)).items));
  });
  afterAll(async () => {
    rmSync(directory, { recursive: true });
    await api.close();
  });

  it("are in no copy of the journal on this machine", () => {
    const state = join(directory, "state");
    const files = readdirSync(state, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(files.length).toBeGreaterThan(2);
    for (const { parentPath, name } of files) {
      const text = readFileSync(join(parentPath, name), "utf8");
      expect([name, holds(text, TOKEN), holds(text, PASSWORD)]).toEqual([name, false, false]);
    }
  });

  it("are in nothing that is printed, and in no event", () => {
    const text = printed.join("\n");
    expect(text).toContain('"event":"end"');
    expect([holds(text, TOKEN), holds(text, PASSWORD)]).toEqual([false, false]);
  });

  it("the token is in nothing the cluster keeps of the run either", async () => {
    const { items } = (
      await api.call("GET", "/api/v1/namespaces/kube-system/secrets", { headers: { authorization: `Bearer ${TOKEN}` } })
    ).body;
    expect(items.length).toBeGreaterThan(1);
    const contents = JSON.stringify(
      items.map(({ data }: { data: Record<string, string> }) =>
        Object.values(data).map((text) => Buffer.from(text, "base64").toString("latin1")),
      ),
    );
    expect(holds(contents, TOKEN)).toBe(false);
  });

  it("are in no error, with its cause and its log line", async () => {
    const kubeconfig = join(directory, "broken");
    writeFileSync(kubeconfig, `users: [{name: a, user: {token: ${TOKEN}}}\nclusters: ]`);
    const lines: string[] = [];
    const log = await openLog({ level: "debug", format: "json", write: (line) => lines.push(line) });
    const listAt = (server: string, token: string) => {
      const file = join(directory, "other");
      writeFileSync(file, kubeconfigOf(server, token));
      return createClient(httpsTransport(loadConnection({ kubeconfig: file }, clusterEnv({}, false))), {
        userAgent: "x",
      }).list(SECRETS);
    };
    for (const act of [
      async () => loadConnection({ kubeconfig }, clusterEnv({}, false)),
      () => listAt("http://127.0.0.1:1", TOKEN),
      () => listAt(api.url, `${TOKEN}-wrong`),
    ]) {
      const error = await act().then(
        () => undefined,
        (thrown: unknown) => thrown as Error,
      );
      expect(error).toBeDefined();
      log.error({ error, cause: error?.cause }, String(error?.message));
    }
    expect(lines).toHaveLength(3);
    expect(holds(lines.join("\n"), TOKEN)).toBe(false);
  });
});
