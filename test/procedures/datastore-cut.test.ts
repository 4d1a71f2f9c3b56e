import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { EtcdConnection } from "../../src/datastore/etcd/etcd-connection.ts";
import { readEtcd, writeEtcd, writeLock } from "../../src/procedures/migrations/datastore/etcd-objects.ts";
import { byId, differences, type StoredObjects } from "../../src/procedures/migrations/datastore/stored-objects.ts";
import { create, type EtcdData, etcdData, seedEtcd } from "../support/etcd-cluster.ts";
import { type EtcdServer, hasEtcd, NO_ETCD, startEtcd } from "../support/etcd-server.ts";

const why = hasEtcd() ? undefined : NO_ETCD;
const never = new AbortController().signal;

/** What a killed vendorctl leaves in etcd, between any two of its writes there. */
describe.skipIf(why)(`carrying back to etcd${why ? ` (${why})` : ""}`, () => {
  let server: EtcdServer;
  let data: EtcdData;
  let before: StoredObjects;
  let after: StoredObjects;
  const read = async () => (await readEtcd(data.etcd, vendorNames)).objects;

  beforeAll(async () => {
    server = await startEtcd();
    data = etcdData(server);
    await seedEtcd(data.client, ["node-1", "node-2"]);
    before = await read();
    // Some objects are new, some another, some gone.
    const kept = [...before.values()].filter(({ id }) => !id.startsWith("GlobalNetworkSet "));
    const changed = kept.map((one) =>
      one.id.startsWith("Tier ") ? { ...one, object: { ...one.object, spec: { order: 7 } } } : one,
    );
    const pool = kept.find(({ id }) => id === "IPPool blue")!;
    const more = ["green", "red"].map((name) => ({
      ...pool,
      id: `IPPool ${name}`,
      object: { ...pool.object, metadata: { name }, spec: { cidr: "10.9.0.0/24", blockSize: 26 } },
    }));
    after = byId([...changed, ...more]);
  });
  afterAll(async () => {
    data?.close();
    await server?.stop();
  });

  it("ends the same wherever it was cut off, before and after each write, there and back", async () => {
    const plain = await writes(() => true, after);
    expect(plain).toBe(4);
    expect(differences(after, await read())).toEqual([]);
    await writeEtcd(data.etcd, before, vendorNames, never);
    for (let at = 1; at <= plain; at++) {
      for (const done of [false, true]) {
        await expect(
          writes((count) => count < at || (count === at && done ? "then die" : false), after),
        ).rejects.toThrow("killed");
        await writeEtcd(data.etcd, after, vendorNames, never);
        expect(differences(after, await read())).toEqual([]);
        await writeEtcd(data.etcd, before, vendorNames, never);
        expect(differences(before, await read())).toEqual([]);
      }
    }
  });

  it("writes past its own lock, which programs do not", async () => {
    await writeLock(data.etcd, vendorNames, { ready: false, moved: false });
    await expect(create(data.client, "globalNetworkSet", "late", { nets: [] })).rejects.toThrow("DATASTORE_LOCKED");
    expect(await writeEtcd(data.etcd, after, vendorNames, never)).toBeGreaterThan(0);
    await writeLock(data.etcd, vendorNames, { ready: true, moved: false });
    await create(data.client, "globalNetworkSet", "late", { nets: [] });
  });

  /** How many writes it took; `may` says of each whether it is carried out, and whether the process lives on. */
  async function writes(may: (count: number) => boolean | "then die", wanted: StoredObjects): Promise<number> {
    let count = 0;
    const cut = {
      read: data.etcd.read.bind(data.etcd),
      write: async (...args: Parameters<EtcdConnection["write"]>) => {
        const word = may(++count);
        if (word === false) throw new Error("killed");
        const answer = await data.etcd.write(...args);
        if (word === "then die") throw new Error("killed");
        return answer;
      },
    } as unknown as EtcdConnection;
    await writeEtcd(cut, wanted, vendorNames, never);
    return count;
  }
});
