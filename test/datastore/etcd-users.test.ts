import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { typeOf } from "../../src/agent/stored-kinds.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { globalNetworkSet } from "../../src/api/resources/network-set.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { createInformer, type Informer } from "../../src/cluster/informer.ts";
import { readEtcdOptions } from "../../src/datastore/config.ts";
import { EtcdConnection } from "../../src/datastore/etcd/etcd-connection.ts";
import { ABSENT, readKey, writeKey } from "../../src/datastore/etcd/etcd-keys.ts";
import { patience } from "../../src/kit/testing/patience.ts";
import { hasEtcd, NO_ETCD, USER } from "../support/etcd-server.ts";
import { type EtcdClient, etcdClient } from "./etcd-client.ts";

const SETS = placesOf(globalNetworkSet, vendorNames).stored;
const set = (name: string) => ({ ...typeOf(SETS), metadata: { name }, spec: { nets: [] } });
const KEY = "/vendor/resources/v3/globalnetworksets/mine";
const run = promisify(execFile);
const missing = hasEtcd() ? undefined : NO_ETCD;

/** An etcd that asks who someone is: a user whose role is for the service's keys. */
describe.skipIf(missing)(`etcd with users${missing ? ` (${missing})` : ""}`, () => {
  let opened: EtcdClient | undefined;
  let informer: Informer<KubeObject> | undefined;
  const more: EtcdConnection[] = [];
  afterEach(async () => {
    await informer?.stop();
    for (const connection of more.splice(0)) connection.close();
    await opened?.close();
  });

  /** Another program, with what its environment says of the user. */
  const connect = (user: { ETCD_USERNAME?: string; ETCD_PASSWORD?: string }) => {
    const { ETCD_USERNAME: _, ETCD_PASSWORD: __, ...env } = opened!.server.env;
    const connection = new EtcdConnection(readEtcdOptions({ ...env, ...user })!);
    more.push(connection);
    return connection;
  };
  const follow = async ({ client }: EtcdClient) => {
    informer = createInformer<KubeObject>(client, SETS, { backoff: { initialMs: 50, maxMs: 500, jitter: 0 } });
    await informer.synced;
    const names = () => informer!.list().map(({ metadata }) => metadata.name);
    return (name: string) => expect.poll(names, { timeout: patience(20_000) }).toContain(name);
  };

  it("takes an expired token for what it is: the next call has another, and nothing is written twice", async () => {
    opened = await etcdClient({ tls: true, users: true });
    const { client, server } = opened;
    const seen = await follow(opened);
    await client.create(SETS, set("before"));
    // With a password, the same too, etcd ends every token that it has given for it.
    for (const name of ["after", "again"]) {
      await server.admin.changePassword(USER);
      const created = await Promise.all([1, 2, 3].map((at) => client.create<KubeObject>(SETS, set(`${name}-${at}`))));
      expect(new Set(created.map(({ metadata }) => metadata.resourceVersion)).size).toBe(3);
      await seen(`${name}-3`);
    }
    await server.members[0]!.kill();
    await server.members[0]!.start();
    await expect
      .poll(() => client.create(SETS, set("after-a-restart")).then(() => "created", String), {
        timeout: patience(20_000),
      })
      .toMatch(/created|AlreadyExists|already exists/);
    await seen("after-a-restart");
  });

  it("says in one sentence that a password is wrong, or that there is none, and writes nothing", async () => {
    opened = await etcdClient({ users: true });
    const wrong = connect({ ...opened.server.env, ETCD_PASSWORD: "guessed" });
    const nobody = connect({});
    for (const ask of [readKey, (etcd: EtcdConnection, key: string) => writeKey(etcd, key, "{}", ABSENT)]) {
      await expect(ask(wrong, KEY)).rejects.toThrow("etcd does not accept user vendor with this password");
      await expect(ask(nobody, KEY)).rejects.toThrow("etcd asks for a user and a password, and none is set");
    }
    expect(await readKey(opened.etcd, KEY)).toBeUndefined();
    // Corrected where it was wrong, nothing else is needed.
    await opened.server.admin.changePassword({ ...USER, password: "guessed" });
    expect(await readKey(wrong, KEY)).toBeUndefined();
  });

  it("lets the service have its own keys, and no others", async () => {
    opened = await etcdClient({ users: true });
    expect(await writeKey(opened.etcd, KEY, "{}", ABSENT)).toBeGreaterThan(0);
    for (const key of ["/registry/secrets", "/vendor", "/vendos"]) {
      await expect(readKey(opened.etcd, key)).rejects.toThrow("permission denied");
      await expect(writeKey(opened.etcd, key, "x", ABSENT)).rejects.toThrow("permission denied");
    }
    // What is not of one key an administrator may do, and the service as well: it compacts.
    await opened.forget();
  });

  it.each([false, true])("is followed while its administrator enables users (TLS: %s)", async (tls) => {
    opened = await etcdClient({ tls, user: true });
    const seen = await follow(opened);
    await opened.client.create(SETS, set("before"));
    await opened.server.admin.enableUsers(USER);
    await opened.client.create(SETS, set("after"));
    await seen("after");
  });

  it("is read by vendorctl with the user of its environment", async () => {
    opened = await etcdClient({ tls: true, users: true });
    await opened.client.create(SETS, set("offices"));
    const get = (ETCD_PASSWORD: string) =>
      run(process.execPath, [resolve("bin/vendorctl"), "get", "globalnetworksets", ...opened!.server.flags], {
        env: { ...process.env, ETCD_USERNAME: USER.name, ETCD_PASSWORD },
      });
    expect((await get(USER.password)).stdout).toContain("offices");
    await expect(get("guessed")).rejects.toMatchObject({
      stderr: expect.stringMatching(/^error: etcd does not accept user vendor with this password \[ETCD_LOGIN\]\n/),
    });
  });
});
