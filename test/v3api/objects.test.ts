import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { v3Uid } from "../../src/api/resources/v3-uid.ts";
import { startV3Api, type V3Api } from "../support/v3-api.ts";

/** The v3 API as a client sees it: the same objects as the stored ones, under their own group, names and UIDs. */

const V3 = "/apis/vendor.io/v3";
const STORED = "/apis/crd.vendor.io/v1";
const POLICIES = `${V3}/namespaces/default/networkpolicies`;
const STORED_POLICIES = `${STORED}/namespaces/default/networkpolicies`;

let api: V3Api;
beforeAll(async () => {
  api = await startV3Api();
});
afterAll(() => api.close());

const policy = (name: string, spec: object = { selector: "all()" }) => ({
  apiVersion: "vendor.io/v3",
  kind: "NetworkPolicy",
  metadata: { name },
  spec,
});
const set = (name: string, more: object = {}) => ({
  apiVersion: "vendor.io/v3",
  kind: "GlobalNetworkSet",
  metadata: { name, ...more },
  spec: { nets: ["10.0.0.0/8"] },
});
const SETS = `${V3}/globalnetworksets`;

describe("an object of the v3 API", () => {
  it("is stored as a custom resource with another UID, and read back as it was written", async () => {
    const made = await api.create(SETS, set("one", { labels: { a: "b" } }));
    expect(made.status).toBe(201);
    const stored = (await api.get(`${STORED}/globalnetworksets/one`)).body;
    expect(stored).toMatchObject({ apiVersion: "crd.vendor.io/v1", kind: "GlobalNetworkSet", spec: set("one").spec });
    expect(made.body.metadata.uid).toBe(v3Uid(stored.metadata.uid, "v3.31.3"));
    expect(made.body.metadata.uid).not.toBe(stored.metadata.uid);
    expect(made.body.metadata.resourceVersion).toBe(stored.metadata.resourceVersion);
    expect(made.body.metadata.managedFields[0]).toMatchObject({ manager: "story", apiVersion: "vendor.io/v3" });
    expect((await api.get(`${SETS}/one`)).body).toEqual(made.body);
  });

  it("is listed with its kind's own name, in pages, by label and by name", async () => {
    for (const name of ["l1", "l2", "l3"]) await api.create(SETS, set(name, { labels: { listed: "yes" } }));
    const first = (await api.get(`${SETS}?labelSelector=listed%3Dyes&limit=2`)).body;
    expect(first).toMatchObject({ kind: "GlobalNetworkSetList", apiVersion: "vendor.io/v3" });
    expect(first.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(["l1", "l2"]);
    const token = encodeURIComponent(first.metadata.continue);
    const rest = (await api.get(`${SETS}?labelSelector=listed%3Dyes&limit=2&continue=${token}`)).body;
    expect(rest.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(["l3"]);
    const named = (await api.get(`${SETS}?fieldSelector=metadata.name%3Dl2`)).body;
    expect(named.items).toHaveLength(1);
    expect((await api.get(`${SETS}?fieldSelector=spec.nets%3Dx`)).body.message).toBe(
      "field label not supported: spec.nets",
    );
  });

  it("shows as a table with the columns of its kind, and as metadata alone", async () => {
    await api.create(`${V3}/ippools`, {
      apiVersion: "vendor.io/v3",
      kind: "IPPool",
      metadata: { name: "table" },
      spec: { cidr: "10.99.0.0/16" },
    });
    const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    const table = (await api.call("GET", `${V3}/ippools/table`, { headers: { accept } })).body;
    expect(table.columnDefinitions.map((column: { name: string }) => column.name)).toEqual(
      expect.arrayContaining(["Name", "CIDR", "VXLAN", "NAT", "Age"]),
    );
    expect(table.rows[0].cells.slice(0, 3)).toEqual(["table", "10.99.0.0/16", "Never"]);
    const metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    const partial = (await api.call("GET", `${V3}/ippools/table`, { headers: { accept: metadata } })).body;
    expect(partial).toMatchObject({ kind: "PartialObjectMetadata", metadata: { name: "table" } });
    expect(partial.spec).toBeUndefined();
  });

  it("is updated only from its newest version, and says so in this API's words", async () => {
    const made = (await api.create(SETS, set("put"))).body;
    const next = { ...made, spec: { nets: ["10.1.0.0/16"] } };
    expect((await api.call("PUT", `${SETS}/put`, { body: next })).status).toBe(200);
    const stale = await api.call("PUT", `${SETS}/put`, { body: next });
    expect(stale.body).toMatchObject({
      reason: "Conflict",
      message: expect.stringContaining('cannot be fulfilled on globalnetworksets.vendor.io "put"'),
      details: { group: "vendor.io", kind: "globalnetworksets", name: "put" },
    });
  });

  it("is patched by merge and by JSON patch, under the patcher's own name", async () => {
    await api.create(SETS, set("patched"));
    const merged = await api.call("PATCH", `${SETS}/patched?fieldManager=merger`, {
      body: { metadata: { labels: { team: "red" } } },
      type: "application/merge-patch+json",
    });
    expect(merged.body.metadata).toMatchObject({ labels: { team: "red" } });
    const { uid } = merged.body.metadata;
    const operations = [
      { op: "test", path: "/metadata/uid", value: uid },
      { op: "add", path: "/spec/nets/-", value: "10.2.0.0/16" },
    ];
    const patched = await api.call("PATCH", `${SETS}/patched`, {
      body: operations,
      type: "application/json-patch+json",
    });
    expect(patched.body.spec.nets).toEqual(["10.0.0.0/8", "10.2.0.0/16"]);
    const managers = patched.body.metadata.managedFields.map((entry: { manager: string }) => entry.manager);
    expect(managers).toEqual(expect.arrayContaining(["merger", "story"]));
  });

  it("is patched by many at once, and no change is lost", async () => {
    await api.create(SETS, set("crowd"));
    const labels = Array.from({ length: 8 }, (_, i) => `l${i}`);
    const answers = await Promise.all(
      labels.map((label) =>
        api.call("PATCH", `${SETS}/crowd`, {
          body: { metadata: { labels: { [label]: "x" } } },
          type: "application/merge-patch+json",
        }),
      ),
    );
    const written = labels.filter((_, i) => answers[i]!.status === 200);
    expect(Object.keys((await api.get(`${SETS}/crowd`)).body.metadata.labels).sort()).toEqual(written);
    expect(written.length).toBeGreaterThan(3);
  });

  it("is applied by two managers, each owning its fields; a quarrel names them and this API", async () => {
    const config = (nets: string[]) => ({ ...set("applied"), spec: { nets } });
    expect((await api.apply("red", `${SETS}/applied`, config(["10.1.0.0/16"]))).status).toBe(201);
    expect((await api.apply("red", `${SETS}/applied`, config(["10.1.0.0/16"]))).status).toBe(200);
    const tier = (order: number) => ({
      apiVersion: "vendor.io/v3",
      kind: "Tier",
      metadata: { name: "quarrel" },
      spec: { order },
    });
    await api.create(`${V3}/tiers`, tier(10));
    const quarrel = await api.apply("blue", `${V3}/tiers/quarrel`, tier(20));
    expect(quarrel.body).toMatchObject({
      reason: "Conflict",
      message: 'Apply failed with 1 conflict: conflict with "story" using vendor.io/v3: .spec.order',
    });
    const forced = await api.apply("blue", `${V3}/tiers/quarrel`, tier(20), { force: true });
    expect(forced.body.spec.order).toBe(20);
  });

  it("is deleted by UID, and only if the UID is the v3 one", async () => {
    const made = (await api.create(SETS, set("deleted"))).body;
    const stored = (await api.get(`${STORED}/globalnetworksets/deleted`)).body;
    const remove = (uid: string) =>
      api.call("DELETE", `${SETS}/deleted`, { body: { kind: "DeleteOptions", preconditions: { uid } } });
    const refused = await remove(stored.metadata.uid);
    expect(refused.status).toBe(409);
    expect(refused.body.message).toContain(
      `UID in precondition: ${stored.metadata.uid}, UID in object meta: ${made.metadata.uid}`,
    );
    const gone = await remove(made.metadata.uid);
    expect(gone.body).toMatchObject({
      status: "Success",
      details: { group: "vendor.io", kind: "globalnetworksets", name: "deleted", uid: made.metadata.uid },
    });
    expect((await api.get(`${SETS}/deleted`)).body.message).toBe('globalnetworksets.vendor.io "deleted" not found');
  });

  it("is written dry: judged, answered, not stored", async () => {
    expect((await api.call("POST", `${SETS}?dryRun=All`, { body: set("dry") })).status).toBe(201);
    expect((await api.get(`${SETS}/dry`)).status).toBe(404);
  });

  it("has its owners in v3 words here and in stored words there", async () => {
    const owner = (await api.create(SETS, set("owner"))).body;
    const reference = { apiVersion: "vendor.io/v3", kind: "GlobalNetworkSet", name: "owner", uid: owner.metadata.uid };
    const made = await api.create(SETS, set("owned", { ownerReferences: [reference] }));
    expect(made.body.metadata.ownerReferences).toEqual([reference]);
    const stored = (await api.get(`${STORED}/globalnetworksets/owned`)).body;
    const storedOwner = (await api.get(`${STORED}/globalnetworksets/owner`)).body;
    expect(stored.metadata.ownerReferences).toEqual([
      { ...reference, apiVersion: "crd.vendor.io/v1", uid: storedOwner.metadata.uid },
    ]);
    expect(JSON.stringify(made.body.metadata.managedFields)).toContain(owner.metadata.uid);
    expect(JSON.stringify(made.body.metadata.managedFields)).not.toContain(storedOwner.metadata.uid);
  });
});

describe("a watch of the v3 API", () => {
  it("tells what changes, in this API's words, from whoever changed it", async () => {
    const stop = new AbortController();
    const { metadata } = (await api.get(SETS)).body;
    const url = `${api.url}${SETS}?watch=true&resourceVersion=${metadata.resourceVersion}`;
    const response = await fetch(url, { signal: stop.signal });
    const events = lines(response);
    await api.create(SETS, set("watched"));
    expect((await events.next()).value).toMatchObject({
      type: "ADDED",
      object: { apiVersion: "vendor.io/v3", metadata: { name: "watched" } },
    });
    await api.call("PATCH", `${STORED}/globalnetworksets/watched`, {
      body: { spec: { nets: [] } },
      type: "application/merge-patch+json",
    });
    const modified = (await events.next()).value;
    expect(modified).toMatchObject({ type: "MODIFIED", object: { apiVersion: "vendor.io/v3", spec: { nets: [] } } });
    await api.call("DELETE", `${SETS}/watched`);
    const deleted = (await events.next()).value;
    expect(deleted.type).toBe("DELETED");
    expect(deleted.object.metadata.uid).toBe(modified.object.metadata.uid);
    stop.abort();
  });

  it("fails as it does in the main API when it asks for too old a version", async () => {
    const response = await fetch(`${api.url}${SETS}?watch=true&resourceVersion=1`);
    expect((await lines(response).next()).value).toMatchObject({ type: "ERROR", object: { code: 410 } });
  });
});

describe("the name of a policy", () => {
  it("is kept with its tier; the default tier is left out where the writer left it out", async () => {
    const short = await api.create(POLICIES, policy("short"));
    expect(short.body).toMatchObject({ metadata: { name: "short" }, spec: { tier: "default", types: ["Ingress"] } });
    expect((await api.get(`${STORED_POLICIES}/default.short`)).status).toBe(200);
    expect((await api.get(`${POLICIES}/default.short`)).body.metadata.name).toBe("short");

    const long = await api.create(POLICIES, policy("default.long"));
    expect(long.body.metadata.name).toBe("default.long");
    expect(long.body.metadata.annotations).toBeUndefined();
    expect((await api.get(`${POLICIES}/long`)).body.metadata).toEqual(long.body.metadata);
    const again = await api.create(POLICIES, policy("long"));
    expect(again.body.message).toBe('networkpolicies.vendor.io "long" already exists');
  });

  it("names its tier, which must exist and cannot change", async () => {
    const lost = await api.create(POLICIES, policy("ops.allow-dns"));
    expect(lost.body).toMatchObject({
      code: 422,
      message: 'NetworkPolicy.vendor.io "ops.allow-dns" is invalid: spec.tier: Not found: "ops"',
    });
    await api.create(`${V3}/tiers`, {
      apiVersion: "vendor.io/v3",
      kind: "Tier",
      metadata: { name: "ops" },
      spec: { order: 100 },
    });
    const made = await api.create(POLICIES, policy("ops.allow-dns"));
    expect(made.body.spec.tier).toBe("ops");
    const unprefixed = await api.create(POLICIES, policy("allow-ntp", { tier: "ops" }));
    expect(unprefixed.body.message).toContain("a policy of tier ops is named ops.allow-ntp");
    const moved = await api.call("PATCH", `${POLICIES}/ops.allow-dns`, {
      body: { spec: { tier: "default" } },
      type: "application/merge-patch+json",
    });
    expect(moved.body).toMatchObject({ code: 422, message: expect.stringContaining("spec.tier: Invalid value") });
  });

  it("is selected by tier", async () => {
    const inOps = (await api.get(`${POLICIES}?fieldSelector=spec.tier%3Dops`)).body.items;
    expect(inOps.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(["ops.allow-dns"]);
    const short = (await api.get(`${POLICIES}?fieldSelector=metadata.name%3Dshort`)).body.items;
    expect(short).toHaveLength(1);
  });

  it("may be made by the server", async () => {
    const object = { ...policy(""), metadata: { generateName: "made-" } };
    const { name } = (await api.create(POLICIES, object)).body.metadata;
    expect(name).toMatch(/^made-.{5}$/);
    expect((await api.get(`${STORED_POLICIES}/default.${name}`)).status).toBe(200);
  });
});

/** Events of a watch, parsed. */
async function* lines(response: Response): AsyncGenerator<{
  type: string;
  // biome-ignore lint/suspicious/noExplicitAny: a story reads whatever the server sent.
  object: any;
}> {
  let rest = "";
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop()!;
    for (const part of parts) yield JSON.parse(part);
  }
}
