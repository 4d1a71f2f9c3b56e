import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { typeOf } from "../../src/agent/stored-kinds.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { clusterInformation } from "../../src/api/resources/cluster-information.ts";
import { ipPool } from "../../src/api/resources/ip-pool.ts";
import { kubeControllersConfiguration } from "../../src/api/resources/kube-controllers-configuration.ts";
import { networkPolicy } from "../../src/api/resources/network-policy.ts";
import { networkSet } from "../../src/api/resources/network-set.ts";
import { placesOf, type Resource } from "../../src/api/resources/resource.ts";
import { customResourceDefinitions } from "../../src/api/schema/crd.ts";
import type { StatusError } from "../../src/api/status.ts";
import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { createApiServer } from "../../src/apiserver/server.ts";
import { type Client, createClient } from "../../src/cluster/client.ts";
import { isAlreadyExists, isConflict, isGone, isNotFound } from "../../src/cluster/failures.ts";
import { createInformer } from "../../src/cluster/informer.ts";
import { CRDS, NAMESPACES } from "../../src/cluster/kinds.ts";
import { lockableTransport } from "../../src/datastore/lockable-transport.ts";
import { IPAM_BLOCKS } from "../../src/ipam/ipam-kinds.ts";
import { hasEtcd, NO_ETCD } from "../support/etcd-server.ts";
import { etcdClient } from "./etcd-client.ts";

/** What programs expect of the datastore, whichever it is. */
interface Opened {
  client: Client;
  /** Forgets the history up to now. */
  forget?(): Promise<void>;
  close(): Promise<void>;
}

async function onCrds(): Promise<Opened> {
  const server = await createApiServer({ kinds: kubernetesKinds() });
  const client = createClient(lockableTransport(server.transport()), { userAgent: "story" });
  for (const crd of customResourceDefinitions()) await client.create(CRDS, crd);
  for (const name of ["shop", "bank"]) {
    await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  return { client, close: () => server.close() };
}

const stored = (resource: Resource) => placesOf(resource, vendorNames).stored;
const SETS = stored(networkSet);
const POLICIES = stored(networkPolicy);
const POOLS = stored(ipPool);
const INFORMATION = stored(clusterInformation);
const SETTINGS = stored(kubeControllersConfiguration);

const failure = (doing: Promise<unknown>): Promise<StatusError> =>
  doing.then(
    () => Promise.reject(new Error("it was accepted")),
    (error: unknown) => error as StatusError,
  );

describe("the datastore in the Kubernetes API", () => contract(onCrds));
const missing = hasEtcd() ? undefined : NO_ETCD;
describe.skipIf(missing)(`the datastore in etcd${missing ? ` (${missing})` : ""}`, () => contract(() => etcdClient()));

describe.skipIf(missing)(`the datastore in etcd with users, over TLS${missing ? ` (${missing})` : ""}`, () =>
  contract(() => etcdClient({ tls: true, users: true })),
);

function contract(open: () => Promise<Opened>): void {
  let opened: Opened;
  let client: Client;
  beforeAll(async () => {
    opened = await open();
    client = opened.client;
  });
  afterAll(() => opened.close());

  const set = (name: string, nets: string[] = [], labels: Record<string, string> = {}, namespace = "shop") => ({
    ...typeOf(SETS),
    metadata: { name, namespace, labels },
    spec: { nets },
  });
  const get = (name: string) => client.get<ReturnType<typeof set> & KubeObject>(SETS, { name, namespace: "shop" });

  it("creates, reads, replaces and deletes, each on the version that was read", async () => {
    const made = await client.create<KubeObject>(SETS, set("life", ["10.0.0.0/8"]));
    expect(made.metadata).toMatchObject({
      uid: expect.any(String),
      creationTimestamp: expect.any(String),
      resourceVersion: expect.stringMatching(/^\d+$/),
      generation: 1,
    });
    expect(await get("life")).toMatchObject({ ...typeOf(SETS), spec: { nets: ["10.0.0.0/8"] } });
    const changed = await client.replace(SETS, { ...made, spec: { nets: [] } });
    expect(Number(changed.metadata.resourceVersion)).toBeGreaterThan(Number(made.metadata.resourceVersion));
    expect(changed.metadata).toMatchObject({ uid: made.metadata.uid, generation: 2 });
    expect(isConflict(await failure(client.replace(SETS, { ...made, spec: { nets: [] } })))).toBe(true);
    const again = await client.replace(SETS, changed);
    expect(again.metadata.resourceVersion).toBe(changed.metadata.resourceVersion);
    expect(isAlreadyExists(await failure(client.create(SETS, set("life"))))).toBe(true);
    const ref = { name: "life", namespace: "shop" };
    const { uid, resourceVersion } = changed.metadata;
    const old = { preconditions: { uid, resourceVersion: made.metadata.resourceVersion } };
    expect(isConflict(await failure(client.delete(SETS, ref, old)))).toBe(true);
    await client.delete(SETS, ref, { preconditions: { uid, resourceVersion } });
    expect(isNotFound(await failure(get("life")))).toBe(true);
    expect(isNotFound(await failure(client.delete(SETS, ref)))).toBe(true);
    expect(isNotFound(await failure(client.replace(SETS, changed)))).toBe(true);
  });

  it("takes no write while its ClusterInformation says that it is not ready, but that one", async () => {
    const information = { ...typeOf(INFORMATION), metadata: { name: "default" }, spec: { datastoreReady: true } };
    await client.create(INFORMATION, information);
    const made = await client.create<KubeObject>(SETS, set("locked"));
    const ready = (is: boolean) =>
      client.patch(INFORMATION, { name: "default" }, { type: "merge", patch: { spec: { datastoreReady: is } } });
    await ready(false);
    const ref = { name: "locked", namespace: "shop" };
    const writes = [
      client.create(SETS, set("late")),
      client.replace(SETS, { ...made, spec: { nets: ["10.0.0.0/8"] } }),
      client.patch(SETS, ref, { type: "merge", patch: { spec: { nets: ["10.0.0.0/8"] } } }),
      client.delete(SETS, ref),
    ];
    for (const { code, message } of await Promise.all(writes.map(failure))) {
      expect([code, message]).toEqual([503, expect.stringContaining("[DATASTORE_LOCKED]")]);
    }
    expect(await get("locked")).toMatchObject({ spec: { nets: [] } });
    await ready(true);
    await client.delete(SETS, ref);
    await client.delete(INFORMATION, { name: "default" });
  });

  it("fills in defaults and refuses what the schema does not allow", async () => {
    const pool = { ...typeOf(POOLS), metadata: { name: "pool" }, spec: { cidr: "10.1.0.0/16" } };
    const made = await client.create<KubeObject>(POOLS, pool);
    const bad = { ...made, spec: { ...(made["spec"] as object), vxlanMode: "Sometimes" } };
    const refused = await failure(client.replace(POOLS, bad));
    expect([refused.code, refused.message]).toEqual([422, expect.stringContaining("spec.vxlanMode")]);
    const strict = { ...pool, metadata: { name: "strict" }, spec: { ...pool.spec, nonsense: 1 } };
    expect((await failure(client.create(POOLS, strict, { fieldValidation: "Strict" }))).message).toContain("nonsense");
    await client.create(POOLS, { ...pool, metadata: { name: "dry" } }, { dryRun: true });
    expect(isNotFound(await failure(client.get(POOLS, { name: "dry" })))).toBe(true);
  });

  it("keeps every part of a policy, an address block and a status", async () => {
    const policy = {
      ...typeOf(POLICIES),
      metadata: { name: "default.web", namespace: "shop", annotations: { "example.org/a": "b" } },
      spec: { tier: "default", selector: "app == 'web'", ingress: [{ action: "Allow", protocol: "TCP" }] },
    };
    await client.create<KubeObject>(POLICIES, policy);
    const read = await client.get(POLICIES, policy.metadata);
    expect(read).toMatchObject(policy);
    const plain = { ...policy, metadata: { name: "web", namespace: "shop" } };
    await client.create<KubeObject>(POLICIES, plain);
    expect((await client.get(POLICIES, plain.metadata)).metadata.name).toBe("web");
    const block = {
      ...typeOf(IPAM_BLOCKS),
      metadata: { name: "10-1-0-0-26" },
      spec: {
        cidr: "10.1.0.0/26",
        affinity: "host:n1",
        allocations: [null, 0],
        unallocated: [0],
        attributes: [],
        deleted: false,
      },
    };
    await client.create<KubeObject>(IPAM_BLOCKS, block);
    expect(await client.get(IPAM_BLOCKS, block.metadata)).toMatchObject({ spec: block.spec });
    const settings = await client.create<KubeObject>(SETTINGS, { ...typeOf(SETTINGS), metadata: { name: "default" } });
    const status = { runningConfig: { logSeverityScreen: "Info" } };
    const told = await client.replace(
      SETTINGS,
      { ...settings, status, spec: { healthChecks: "Disabled" } } as KubeObject,
      {
        subresource: "status",
      },
    );
    expect(told).toMatchObject({ status });
    expect(await client.get(SETTINGS, { name: "default" })).not.toMatchObject({ spec: { healthChecks: "Disabled" } });
  });

  it("patches what is there, whoever writes at the same time", async () => {
    await client.create<KubeObject>(SETS, set("patched"));
    const ref = { name: "patched", namespace: "shop" };
    const label = (i: number) => ({ type: "merge" as const, patch: { metadata: { labels: { [`w${i}`]: "1" } } } });
    await Promise.all([1, 2, 3, 4].map((i) => client.patch(SETS, ref, label(i))));
    expect(Object.keys((await get("patched")).metadata.labels).sort()).toEqual(["w1", "w2", "w3", "w4"]);
    const operations = [{ op: "test" as const, path: "/metadata/labels/w1", value: "2" }];
    expect((await failure(client.patch(SETS, ref, { type: "json", operations }))).code).toBe(422);
  });

  it("lists by label, by name, by namespace and in pages, all as of one moment", async () => {
    for (const name of ["p1", "p2", "p3", "p4", "p5"])
      await client.create<KubeObject>(SETS, set(name, [], { group: "pages" }));
    await client.create<KubeObject>(SETS, set("p0", [], { group: "pages" }, "bank"));
    const selector = { namespace: "shop", labelSelector: "group=pages" };
    const names = (items: KubeObject[]) => items.map(({ metadata }) => metadata.name);
    const first = await client.listPage(SETS, { ...selector, limit: 2 });
    expect(names(first.items)).toEqual(["p1", "p2"]);
    await client.delete(SETS, { name: "p4", namespace: "shop" });
    const second = await client.listPage(SETS, { ...selector, limit: 10, continue: first.continue });
    expect([names(second.items), second.resourceVersion]).toEqual([["p3", "p4", "p5"], first.resourceVersion]);
    expect(second.continue).toBeUndefined();
    expect(names((await client.list(SETS, { labelSelector: "group=pages" })).items)).toEqual([
      "p0",
      "p1",
      "p2",
      "p3",
      "p5",
    ]);
    expect(names((await client.list(SETS, { fieldSelector: "metadata.name=p3" })).items)).toEqual(["p3"]);
  });

  it("watches from a version on: what comes into a selection is added, what leaves it deleted", async () => {
    const before = await client.create<KubeObject>(SETS, set("w0", [], { group: "watched" }));
    await client.create<KubeObject>(SETS, set("w1", [], { group: "watched" }));
    await client.delete(SETS, { name: "w1", namespace: "shop" });
    const stop = new AbortController();
    const events = client.watch(SETS, {
      namespace: "shop",
      labelSelector: "group=watched",
      resourceVersion: before.metadata.resourceVersion,
      signal: stop.signal,
    });
    const seen: string[] = [];
    const watching = (async () => {
      for await (const event of events) {
        if (event.type === "BOOKMARK") continue;
        seen.push(`${event.type} ${event.object.metadata.name}`);
        if (event.object.metadata.name === "w2") stop.abort(new Error("seen enough"));
      }
    })();
    const ended = expect(watching).rejects.toThrow("seen enough");
    const move = (group: string) => ({ type: "merge" as const, patch: { metadata: { labels: { group } } } });
    await client.patch(SETS, { name: "w0", namespace: "shop" }, move("other"));
    await client.patch(SETS, { name: "w0", namespace: "shop" }, move("watched"));
    await client.create<KubeObject>(SETS, set("w2", [], { group: "watched" }, "bank"));
    await client.create<KubeObject>(SETS, set("w2", [], { group: "watched" }));
    await ended;
    expect(seen).toEqual(["ADDED w1", "DELETED w1", "DELETED w0", "ADDED w0", "ADDED w2"]);
  });

  it("keeps an informer right, also when its history was compacted meanwhile", async () => {
    const informer = createInformer<KubeObject>(client, SETS, { labelSelector: "group=informed", pageSize: 1 });
    await informer.synced;
    const there = () =>
      informer
        .list()
        .map(({ metadata }) => metadata.name)
        .sort();
    await client.create<KubeObject>(SETS, set("i1", [], { group: "informed" }));
    await expect.poll(there).toEqual(["i1"]);
    await informer.stop();
    const { resourceVersion } = await client.list(SETS);
    for (const name of ["i2", "i3"]) await client.create<KubeObject>(SETS, set(name, [], { group: "informed" }));
    if (!opened.forget) return;
    await opened.forget();
    const ancient = async () => {
      for await (const _ of client.watch(SETS, { resourceVersion, timeoutSeconds: 5 }));
    };
    expect(isGone(await failure(ancient()))).toBe(true);
    const page = await client.listPage(SETS, { limit: 1 });
    await client.create<KubeObject>(SETS, set("i4", [], { group: "informed" }));
    await opened.forget();
    expect(isGone(await failure(client.listPage(SETS, { limit: 1, continue: page.continue })))).toBe(true);
  });

  it("says of what it does not have that it has it not", async () => {
    const other = { ...SETS, plural: "nonsenses" };
    expect((await failure(client.list(other))).code).toBe(404);
  });
}
