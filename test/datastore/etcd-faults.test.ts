import { afterEach, describe, expect, it } from "vitest";
import { typeOf } from "../../src/agent/stored-kinds.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { globalNetworkSet } from "../../src/api/resources/network-set.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { isAlreadyExists } from "../../src/cluster/failures.ts";
import { createInformer, type Informer } from "../../src/cluster/informer.ts";
import { patience } from "../../src/kit/testing/patience.ts";
import { type EtcdOptions, hasEtcd, NO_ETCD } from "../support/etcd-server.ts";
import { type EtcdClient, etcdClient } from "./etcd-client.ts";

const SETS = placesOf(globalNetworkSet, vendorNames).stored;
const set = (name: string) => ({ ...typeOf(SETS), metadata: { name }, spec: { nets: [] } });

const missing = hasEtcd() ? undefined : NO_ETCD;

/** Whatever happens to etcd: what it confirmed is there, and who follows it sees all of it in the end. */
describe.skipIf(missing)(`etcd that fails${missing ? ` (${missing})` : ""}`, () => {
  let opened: EtcdClient | undefined;
  let informer: Informer<KubeObject> | undefined;
  afterEach(async () => {
    await informer?.stop();
    await opened?.close();
  });

  async function open(options?: EtcdOptions) {
    opened = await etcdClient(options);
    const { client } = opened;
    const confirmed: string[] = [];
    informer = createInformer<KubeObject>(client, SETS, { backoff: { initialMs: 50, maxMs: 500, jitter: 0 } });
    await informer.synced;
    /** Tries until etcd confirms; what it did without confirming is found to be there. */
    const write = async (name: string) => {
      const until = Date.now() + patience(20_000);
      for (;;) {
        try {
          await client.create<KubeObject>(SETS, set(name));
        } catch (error) {
          if (!isAlreadyExists(error)) {
            if (Date.now() > until) throw error;
            await new Promise(setImmediate);
            continue;
          }
        }
        confirmed.push(name);
        return;
      }
    };
    const followed = () =>
      (informer as Informer<KubeObject>)
        .list()
        .map(({ metadata }) => metadata.name)
        .sort();
    const allThere = async () => {
      await expect.poll(followed, { timeout: patience(60_000) }).toEqual([...confirmed].sort());
      const { items } = await client.list<KubeObject>(SETS);
      expect(items.map(({ metadata }) => metadata.name)).toEqual([...confirmed].sort());
    };
    return { ...opened, write, allThere };
  }

  it("a member of three is killed, another stopped when it is back: writes go on, nothing is lost", async () => {
    const { server, write, allThere } = await open({ members: 3 });
    await write("before");
    await server.members[0]!.kill();
    await write("one-is-dead");
    await allThere();
    await server.members[0]!.start();
    server.members[1]!.pause();
    await write("one-is-silent");
    await allThere();
    server.members[1]!.resume();
    await write("all-are-back");
    await allThere();
  });

  it("the only one is killed, and started again with new certificates of a new authority", async () => {
    const { server, write, allThere, client } = await open({ tls: true });
    await write("before");
    await server.members[0]!.kill();
    await expect(client.create<KubeObject>(SETS, set("refused"))).rejects.toThrow(/\[ETCD_UN(?:REACHABLE|ANSWERED)\]/);
    server.rotate();
    await server.members[0]!.start();
    await write("after");
    await allThere();
  });

  it("gets the certificates of a new authority, member by member: clients follow without a restart", async () => {
    const { server, write, allThere } = await open({ members: 3, tls: true });
    await write("before");
    server.rotate();
    for (const [at, member] of server.members.entries()) {
      await member.kill();
      await member.start();
      await write(`rotated-${at}`);
      await allThere();
    }
  });

  it("is compacted while a watch is away", async () => {
    const { server, write, allThere, client, forget } = await open();
    await write("before");
    await allThere();
    server.members[0]!.pause();
    const waiting = write("while-it-is-silent");
    server.members[0]!.resume();
    await waiting;
    for (const name of ["a", "b", "c"]) await write(name);
    await client.delete(SETS, { name: "a" });
    await client.delete(SETS, { name: "b" });
    await forget();
    await server.members[0]!.kill();
    await server.members[0]!.start();
    await write("after");
    await expect
      .poll(
        () =>
          informer
            ?.list()
            .map(({ metadata }) => metadata.name)
            .sort(),
        { timeout: patience(60_000) },
      )
      .toEqual(["after", "before", "c", "while-it-is-silent"]);
  });

  it("is full: refuses with its reason, keeps what it has, and takes writes again when there is room", async () => {
    const { client, write, allThere } = await open({ quotaBytes: 2_000_000 });
    await write("before");
    const big = (name: string) => ({ ...set(name), metadata: { name, annotations: { much: "x".repeat(200_000) } } });
    const fill = async () => {
      for (let at = 0; ; at++) await client.create<KubeObject>(SETS, big(`big-${at}`));
    };
    await expect(fill()).rejects.toThrow("[ETCD_FULL]");
    await expect(client.create<KubeObject>(SETS, set("more"))).rejects.toThrow("[ETCD_FULL]");
    expect((await client.get(SETS, { name: "before" })).metadata.name).toBe("before");
    const { items } = await client.list<KubeObject>(SETS);
    for (const { metadata } of items) if (metadata.name.startsWith("big-")) await client.delete(SETS, metadata);
    await makeRoom(opened!);
    await write("after");
    await allThere();
  });

  it("has lost its data: what is followed becomes what it has now", async () => {
    const { server, write, client } = await open();
    for (let at = 0; at < 10; at++) await write(`lost-${at}`);
    await server.members[0]!.kill();
    server.members[0]!.clear();
    await server.members[0]!.start();
    await write("new");
    await expect
      .poll(() => informer?.list().map(({ metadata }) => metadata.name), { timeout: patience(60_000) })
      .toEqual(["new"]);
    expect((await client.list(SETS)).items).toHaveLength(1);
  });
});

/** As its administrator would, with etcdctl. */
async function makeRoom({ server }: EtcdClient): Promise<void> {
  const ask = async (path: string, body: object) => {
    const answer = await fetch(new URL(path, server.endpoint), { method: "POST", body: JSON.stringify(body) });
    expect(answer.status).toBe(200);
    return (await answer.json()) as { header: { revision: string }; alarms?: object[] };
  };
  const { header } = await ask("/v3/kv/range", { key: Buffer.from("/").toString("base64") });
  await ask("/v3/kv/compaction", { revision: header.revision, physical: true });
  await ask("/v3/maintenance/defragment", {});
  const { alarms = [] } = await ask("/v3/maintenance/alarm", { action: "GET" });
  for (const alarm of alarms) await ask("/v3/maintenance/alarm", { action: "DEACTIVATE", ...alarm });
}
