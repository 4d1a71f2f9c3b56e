import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import type { StatusError } from "../../src/api/status.ts";
import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { createApiServer } from "../../src/apiserver/server.ts";
import { type Client, createClient } from "../../src/cluster/client.ts";
import { isAlreadyExists, isConflict, isGone, isNotFound } from "../../src/cluster/failures.ts";
import { httpsTransport } from "../../src/cluster/https-transport.ts";
import { createInformer } from "../../src/cluster/informer.ts";
import { CONFIG_MAPS, LEASES, NAMESPACES } from "../../src/cluster/kinds.ts";
import { loadConnection } from "../../src/cluster/kubeconfig.ts";
import { electLeader } from "../../src/cluster/leader.ts";
import type { Lease } from "../../src/cluster/lease.ts";

/**
 * What our client promises, on any cluster: the embedded server in this process and over a socket, and the real one that
 * TEST_KUBECONFIG names. It uses only what every Kubernetes has, in a namespace of its own.
 */
interface Cluster {
  client: Client;
  close(): Promise<void>;
}

const USER_AGENT = "contract";

async function embedded(): Promise<Cluster> {
  const server = await createApiServer({ kinds: kubernetesKinds() });
  return { client: createClient(server.transport(), { userAgent: USER_AGENT }), close: () => server.close() };
}

async function embeddedOverHttp(): Promise<Cluster> {
  const server = await createApiServer({ kinds: kubernetesKinds() });
  const { url } = await server.listen({ host: "127.0.0.1", port: 0 });
  const connection = { server: url, tls: { insecure: false }, auth: { kind: "none" as const }, namespace: "default" };
  const client = createClient(httpsTransport(connection), { userAgent: USER_AGENT });
  const close = async () => {
    client.close();
    await server.close();
  };
  return { client, close };
}

const kubeconfig = process.env["TEST_KUBECONFIG"];

async function real(): Promise<Cluster> {
  const client = createClient(httpsTransport(loadConnection({ kubeconfig })), { userAgent: USER_AGENT });
  return { client, close: async () => client.close() };
}

const CLUSTERS: [string, () => Promise<Cluster>][] = [
  ["the embedded server, in process", embedded],
  ["the embedded server, over HTTP", embeddedOverHttp],
];

interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

describe.each(CLUSTERS)("the client on %s", (_name, open) => contract(open));

const REAL = kubeconfig ? `the cluster of ${kubeconfig}` : "a real cluster (set TEST_KUBECONFIG to run it)";
describe.skipIf(!kubeconfig)(`the client on ${REAL}`, () => contract(real));

function contract(open: () => Promise<Cluster>): void {
  const namespace = `contract-${Math.random().toString(36).slice(2, 10)}`;
  let cluster: Cluster;
  let client: Client;

  beforeAll(async () => {
    cluster = await open();
    client = cluster.client;
    await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  });
  afterAll(async () => {
    await client.delete(NAMESPACES, { name: namespace });
    await cluster.close();
  });

  const map = (name: string, data: Record<string, string> = {}, labels: Record<string, string> = {}): ConfigMap => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace, labels },
    data,
  });
  const get = (name: string) => client.get<ConfigMap>(CONFIG_MAPS, { name, namespace });
  const failure = (doing: Promise<unknown>): Promise<StatusError> =>
    doing.then(
      () => Promise.reject(new Error("it was accepted")),
      (error: unknown) => error as StatusError,
    );
  const ofGroup = async (group: string) => {
    const { items } = await client.list(CONFIG_MAPS, { namespace, labelSelector: `group=${group}` });
    return items.map(({ metadata }) => metadata.name).sort();
  };

  it("creates, reads, replaces and deletes", async () => {
    const made = await client.create(CONFIG_MAPS, map("life", { a: "1" }));
    expect(made.metadata).toMatchObject({ name: "life", uid: expect.any(String), resourceVersion: expect.any(String) });
    expect((await get("life")).data).toEqual({ a: "1" });
    const changed = await client.replace(CONFIG_MAPS, { ...made, data: { a: "2" } });
    expect(changed.metadata.resourceVersion).not.toBe(made.metadata.resourceVersion);
    expect(isConflict(await failure(client.replace(CONFIG_MAPS, { ...made, data: { a: "3" } })))).toBe(true);
    await client.delete(CONFIG_MAPS, { name: "life", namespace });
    expect(isNotFound(await failure(get("life")))).toBe(true);
  });

  it("says what is there already, and names what it was not given a name for", async () => {
    await client.create(CONFIG_MAPS, map("twice"));
    expect(isAlreadyExists(await failure(client.create(CONFIG_MAPS, map("twice"))))).toBe(true);
    const metadata = { generateName: "made-", namespace } as KubeObject["metadata"];
    const made = await client.create(CONFIG_MAPS, { ...map("unused"), metadata });
    expect(made.metadata.name).toMatch(/^made-.{5,}$/);
  });

  it("patches in three ways", async () => {
    const ref = { name: "patched", namespace };
    await client.create(CONFIG_MAPS, map("patched", { a: "1", b: "2" }));
    await client.patch(CONFIG_MAPS, ref, { type: "merge", patch: { data: { a: null, c: "3" } } });
    await client.patch(CONFIG_MAPS, ref, { type: "strategic", patch: { data: { d: "4" } } });
    const operations = [
      { op: "test" as const, path: "/data/b", value: "2" },
      { op: "replace" as const, path: "/data/b", value: "two" },
    ];
    const patched = await client.patch<ConfigMap>(CONFIG_MAPS, ref, { type: "json", operations });
    expect(patched.data).toEqual({ b: "two", c: "3", d: "4" });
    expect((await failure(client.patch(CONFIG_MAPS, ref, { type: "json", operations }))).code).toBe(422);
  });

  it("applies: each manager owns its fields, a conflict names the other, force takes over", async () => {
    const bare = (data: Record<string, string>) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "applied", namespace },
      data,
    });
    await client.apply(CONFIG_MAPS, bare({ a: "1", b: "1" }), { fieldManager: "first" });
    const conflict = await failure(client.apply(CONFIG_MAPS, bare({ a: "2" }), { fieldManager: "second" }));
    expect(isConflict(conflict)).toBe(true);
    expect(conflict.message).toContain('"first"');
    await client.apply(CONFIG_MAPS, bare({ a: "2" }), { fieldManager: "second", force: true });
    const last = await client.apply<ConfigMap>(CONFIG_MAPS, bare({}), { fieldManager: "first" });
    expect(last.data).toEqual({ a: "2" });
    const unnamed = await client.apply(CONFIG_MAPS, { ...bare({ a: "1" }), metadata: { name: "unnamed", namespace } });
    expect(unnamed.metadata.managedFields?.map(({ manager }) => manager)).toEqual([USER_AGENT]);
  });

  it("refuses unknown fields when told to be strict", async (context) => {
    const { minor } = JSON.parse(await (await client.raw({ method: "GET", path: "/version" })).text()) as {
      minor: string;
    };
    context.skip(!(Number.parseInt(minor, 10) >= 25), `servers are strict from 1.25 on, this one is 1.${minor}`);
    const unknown = { ...map("strict"), nonsense: true };
    const refused = await failure(client.create(CONFIG_MAPS, unknown, { fieldValidation: "Strict" }));
    expect(refused.code).toBe(400);
    expect(refused.message).toContain("nonsense");
  });

  it("changes nothing in a dry run", async () => {
    await client.create(CONFIG_MAPS, map("dry"), { dryRun: true });
    expect(isNotFound(await failure(get("dry")))).toBe(true);
    await client.create(CONFIG_MAPS, map("kept"));
    await client.delete(CONFIG_MAPS, { name: "kept", namespace }, { dryRun: true });
    expect((await get("kept")).metadata.name).toBe("kept");
  });

  it("lists by label, by field and in pages, each item with its type", async () => {
    for (const name of ["p1", "p2", "p3", "p4", "p5"])
      await client.create(CONFIG_MAPS, map(name, {}, { group: "pages" }));
    const selector = { namespace, labelSelector: "group=pages" };
    const first = await client.listPage(CONFIG_MAPS, { ...selector, limit: 2 });
    expect(first.items.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      "ConfigMap p1",
      "ConfigMap p2",
    ]);
    const second = await client.listPage(CONFIG_MAPS, { ...selector, limit: 10, continue: first.continue });
    expect(second.items.map(({ metadata }) => metadata.name)).toEqual(["p3", "p4", "p5"]);
    expect(second.continue).toBeUndefined();
    const { items } = await client.list(CONFIG_MAPS, { namespace, fieldSelector: "metadata.name=p3" });
    expect(items.map(({ metadata }) => metadata.name)).toEqual(["p3"]);
  });

  it("deletes a selection, and one object only if it is still the one meant", async () => {
    for (const name of ["d1", "d2"]) await client.create(CONFIG_MAPS, map(name, {}, { group: "deleted" }));
    await client.create(CONFIG_MAPS, map("d3", {}, { group: "spared" }));
    await client.deleteCollection(CONFIG_MAPS, { namespace, labelSelector: "group=deleted" });
    expect([await ofGroup("deleted"), await ofGroup("spared")]).toEqual([[], ["d3"]]);
    const ref = { name: "d3", namespace };
    const other = { preconditions: { uid: "00000000-0000-0000-0000-000000000000" } };
    expect(isConflict(await failure(client.delete(CONFIG_MAPS, ref, other)))).toBe(true);
    const { uid } = (await get("d3")).metadata;
    await client.delete(CONFIG_MAPS, ref, { preconditions: { uid }, propagationPolicy: "Background" });
    expect(await ofGroup("spared")).toEqual([]);
  });

  it("watches from a version on, until told to stop", async () => {
    const before = await client.create(CONFIG_MAPS, map("w0", {}, { group: "watched" }));
    await client.create(CONFIG_MAPS, map("w1", {}, { group: "watched" }));
    await client.delete(CONFIG_MAPS, { name: "w1", namespace });
    const stop = new AbortController();
    const events = client.watch(CONFIG_MAPS, {
      namespace,
      labelSelector: "group=watched",
      resourceVersion: before.metadata.resourceVersion,
      bookmarks: true,
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
    await client.create(CONFIG_MAPS, map("w2", {}, { group: "watched" }));
    await expect(watching).rejects.toThrow("seen enough");
    expect(seen).toEqual(["ADDED w1", "DELETED w1", "ADDED w2"]);
  });

  it("is told when the history it asks for is gone", async (context) => {
    context.skip(open === real, "a real cluster forgets when it pleases");
    const ancient = async () => {
      for await (const _ of client.watch(CONFIG_MAPS, { namespace, resourceVersion: "1", timeoutSeconds: 5 }));
    };
    expect(isGone(await failure(ancient()))).toBe(true);
  });

  it("keeps an informer like the server", async () => {
    await client.create(CONFIG_MAPS, map("i1", {}, { group: "informed" }));
    const informer = createInformer<ConfigMap>(client, CONFIG_MAPS, {
      namespace,
      labelSelector: "group=informed",
      pageSize: 1,
    });
    await informer.synced;
    expect(informer.list(namespace).map(({ metadata }) => metadata.name)).toEqual(["i1"]);
    const changes: string[] = [];
    const gone = new Promise<void>((resolve) => {
      informer.onChange(({ type, key, object }) => {
        changes.push(`${type} ${key.split("/")[1]} ${object.data?.["x"] ?? ""}`.trim());
        if (type === "deleted") resolve();
      });
    });
    await client.create(CONFIG_MAPS, map("i2", {}, { group: "informed" }));
    await client.patch(CONFIG_MAPS, { name: "i1", namespace }, { type: "merge", patch: { data: { x: "1" } } });
    await client.delete(CONFIG_MAPS, { name: "i2", namespace });
    await gone;
    await informer.stop();
    expect(changes).toEqual(["added i1", "added i2", "modified i1 1", "deleted i2"]);
  });

  it("elects one leader by a Lease, and the next when it steps down", async () => {
    const times = { leaseMs: 4_000, renewDeadlineMs: 3_000, retryMs: 100 };
    const began: string[] = [];
    let next: () => void = () => {};
    const begin = (identity: string) => {
      const lead = async (signal: AbortSignal) => {
        began.push(identity);
        next();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      };
      return electLeader({ client, namespace, name: "boss", identity, ...times }, lead);
    };
    const someoneLeads = () =>
      new Promise<void>((resolve) => {
        next = resolve;
      });
    const first = someoneLeads();
    const elections = { a: begin("a"), b: begin("b") };
    await first;
    const leader = began[0] as "a" | "b";
    expect((await client.get<Lease>(LEASES, { name: "boss", namespace })).spec?.holderIdentity).toBe(leader);
    const second = someoneLeads();
    await elections[leader].stop();
    await second;
    expect(began).toHaveLength(2);
    expect(began[1]).not.toBe(leader);
    await elections[leader === "a" ? "b" : "a"].stop();
  });

  it("asks the server where kinds are served", async () => {
    expect(await client.resourceFor({ apiVersion: "v1", kind: "ConfigMap" })).toEqual(CONFIG_MAPS);
    expect(await client.resourceFor({ apiVersion: "coordination.k8s.io/v1", kind: "Lease" })).toEqual(LEASES);
    const unknown = client.resourceFor({ apiVersion: "nowhere.example/v1", kind: "Thing" });
    await expect(unknown).rejects.toMatchObject({ code: "CLUSTER_UNKNOWN_KIND" });
    const all = await client.resources();
    expect(all.find(({ plural }) => plural === "configmaps")).toMatchObject({
      verbs: expect.arrayContaining(["watch"]),
    });
    expect(all.some(({ plural }) => plural.includes("/"))).toBe(false);
  });

  it("reaches subresources, and anything else as it is", async () => {
    const status = await client.get(NAMESPACES, { name: namespace }, { subresource: "status" });
    expect(status.metadata.name).toBe(namespace);
    const version = await client.raw({ method: "GET", path: "/version" });
    expect(JSON.parse(await version.text())).toMatchObject({ major: expect.any(String) });
    expect((await client.raw({ method: "GET", path: "/nowhere" })).status).toBe(404);
  });
}
