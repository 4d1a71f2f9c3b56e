import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { type Client, createClient } from "../../src/cluster/client.ts";
import { httpsTransport } from "../../src/cluster/https-transport.ts";
import { createInformer } from "../../src/cluster/informer.ts";
import { CONFIG_MAPS } from "../../src/cluster/kinds.ts";
import { killUntilWritten } from "./harness.ts";
import { httpTarget } from "./http-target.ts";

it("loses nothing acknowledged over HTTP, whatever the verb and the moment of the kill", async () => {
  const workDir = await mkdtemp(join(tmpdir(), "crash-http-"));
  const seed = Math.floor(Math.random() * 2 ** 31);
  const target = await httpTarget(workDir);
  const client = createClient(httpsTransport(target.connection), { userAgent: "crash/1" });
  const follower = follow(client);
  const report = await killUntilWritten(target, { writes: 1000, kills: 20, writers: 6, seed }).catch((error: Error) => {
    error.message += ` (seed ${seed}, directory ${workDir})`;
    throw error;
  });
  expect(report.acknowledged).toBeGreaterThanOrEqual(1000);
  expect(report.kills).toBeGreaterThanOrEqual(20);
  expect(report.resumed).toBeGreaterThan(0);

  const last = target.start();
  await last.ready();
  const { items } = await client.list(CONFIG_MAPS);
  await vi.waitFor(() => expect(follower.state()).toEqual(versions(items)), { timeout: 120_000 });
  expect(follower.doubled).toEqual([]);
  await follower.stop();
  client.close();
  await last.kill();
  console.log(
    `crash over HTTP: ${report.acknowledged} acknowledged writes, ${report.kills} kills, 0 lost, watches resumed ${report.resumed} times, ${report.relists} relists`,
  );
  await rm(workDir, { recursive: true });
});

/** The product's own list-watch, which lives through every death of the server and is told of nothing but lost connections. */
function follow(client: Client) {
  const informer = createInformer(client, CONFIG_MAPS, { backoff: { initialMs: 20, maxMs: 200, jitter: 0.5 } });
  const doubled: string[] = [];
  const newest = new Map<string, number>();
  informer.onChange(({ type, key, object }) => {
    const version = Number(object.metadata.resourceVersion);
    const news = type === "deleted" ? version >= (newest.get(key) ?? 0) : version > (newest.get(key) ?? 0);
    if (!news) doubled.push(`${key} at ${version} after ${newest.get(key)}`);
    newest.set(key, version);
  });
  return { doubled, state: () => versions(informer.list()), stop: () => informer.stop() };
}

function versions(objects: readonly KubeObject[]): Record<string, string | undefined> {
  const entries = objects.map(({ metadata }) => [metadata.name, metadata.resourceVersion] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
