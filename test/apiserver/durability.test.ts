import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ApiRequest, Transport } from "../../src/api/transport.ts";
import { type Api, startApi } from "../support/api.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";
const MAP = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "m", finalizers: ["story/wait"] },
  data: { a: "1" },
};

/** With a data directory, an answer of any kind shows only what is on disk: here, what another request is still writing. */
describe("while a write is on its way to the disk", () => {
  let workDir: string;
  let api: Api;
  let transport: Transport;
  beforeEach(async () => {
    workDir = await mkdtemp(join(tmpdir(), "durability-"));
    api = await startApi({ dataDir: join(workDir, "data") });
    transport = api.server.transport();
  });
  afterEach(async () => {
    await api.close();
    await rm(workDir, { recursive: true });
  });

  /** Asks both in one breath, and says whether the first write was durable when the second answer came. */
  async function shownDurable(write: ApiRequest, ask: ApiRequest): Promise<boolean> {
    let durable = false;
    const written = transport.request(write);
    const { store } = api.server;
    const onDisk = store.durable(store.revision).then(() => {
      durable = true;
    });
    expect(durable).toBe(false);
    const answer = await transport.request(ask);
    for await (const _ of answer.lines()) break;
    const was = durable;
    await Promise.all([written, onDisk]);
    return was;
  }

  const create: ApiRequest = { method: "POST", path: MAPS, body: JSON.stringify(MAP) };

  it.each<[string, ApiRequest]>([
    ["a get", { method: "GET", path: `${MAPS}/m` }],
    ["a list", { method: "GET", path: MAPS }],
    ["a watch", { method: "GET", path: MAPS, query: { watch: "true" } }],
    ["an update that changes nothing", { method: "PUT", path: `${MAPS}/m`, body: JSON.stringify(MAP) }],
    [
      "a patch that changes nothing",
      { method: "PATCH", path: `${MAPS}/m`, headers: { "content-type": "application/merge-patch+json" }, body: "{}" },
    ],
  ])("%s waits for it", async (_name, ask) => {
    expect(await shownDurable(create, ask)).toBe(true);
  });

  it("a second delete waits for the first", async () => {
    await transport.request(create);
    const remove: ApiRequest = { method: "DELETE", path: `${MAPS}/m` };
    expect(await shownDurable(remove, remove)).toBe(true);
  });
});
