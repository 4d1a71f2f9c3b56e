import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { createApiServer } from "../../src/apiserver/server.ts";
import { createClient } from "../../src/cluster/client.ts";
import { isUnreachable } from "../../src/cluster/failures.ts";
import { httpsTransport } from "../../src/cluster/https-transport.ts";
import { createInformer } from "../../src/cluster/informer.ts";
import { NAMESPACES } from "../../src/cluster/kinds.ts";

const dataDir = mkdtempSync(join(tmpdir(), "restart-"));
afterAll(() => rmSync(dataDir, { recursive: true }));

const start = async (port: number, directory?: string) => {
  const server = await createApiServer({ kinds: kubernetesKinds(), dataDir: directory });
  const listening = await server.listen({ host: "127.0.0.1", port });
  return { server, url: listening.url, port: listening.port };
};

const connectTo = (url: string) => {
  const connection = { server: url, tls: { insecure: false }, auth: { kind: "none" as const }, namespace: "default" };
  return createClient(httpsTransport(connection), { userAgent: "restart" });
};

const named = (name: string) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } });

describe("an API server that goes away and comes back", () => {
  it.each([
    ["with its data: the watch resumes, and nothing is told again", dataDir, ["added one", "added two"]],
    ["without its data: what is lost is told as deleted", undefined, ["added one", "deleted one", "added two"]],
  ])("%s", async (_how, directory, expected) => {
    const first = await start(0, directory);
    const client = connectTo(first.url);
    await client.create(NAMESPACES, named("one"));
    const failures: unknown[] = [];
    const backoff = { initialMs: 20, maxMs: 100, jitter: 0.5 };
    const informer = createInformer(client, NAMESPACES, { backoff, onError: (error) => failures.push(error) });
    await informer.synced;
    const changes: string[] = [];
    const told = new Promise<void>((resolve) => {
      informer.onChange(({ type, key }) => {
        changes.push(`${type} ${key}`);
        if (key === "two") resolve();
      });
    });

    await first.server.close();
    await expect.poll(() => failures.some(isUnreachable)).toBe(true);
    const second = await start(first.port, directory);
    await client.create(NAMESPACES, named("two"));
    await told;

    expect(changes).toEqual(expected);
    await informer.stop();
    client.close();
    await second.server.close();
  });
});
