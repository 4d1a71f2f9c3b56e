import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Api, namespace, startApi } from "../support/api.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";
const configMap = (name: string, data: Record<string, string> = {}, labels: Record<string, string> = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, labels },
  data,
});

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

describe("one object's life", () => {
  it("a node's annotations can be written with its status, and nothing else of it can", async () => {
    await api.create("/api/v1/nodes", {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "told", labels: { a: "1" } },
    });
    const metadata = { annotations: { says: "something" }, labels: { a: "2" } };
    const { body } = await api.call("PATCH", "/api/v1/nodes/told/status", {
      body: { metadata, spec: { unschedulable: true } },
      headers: { "content-type": "application/merge-patch+json" },
    });
    expect(body.metadata).toMatchObject({ annotations: { says: "something" }, labels: { a: "1" } });
    expect(body.spec.unschedulable).toBeUndefined();
  });

  it("is created with an identity, changed, and deleted", async () => {
    const created = await api.create(MAPS, configMap("life", { a: "1" }));
    expect(created.status).toBe(201);
    const { uid, resourceVersion, creationTimestamp } = created.body.metadata;
    expect(uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);

    const updated = await api.call("PUT", `${MAPS}/life`, { body: { ...created.body, data: { a: "2" } } });
    expect(updated.body.data).toEqual({ a: "2" });
    expect(Number(updated.body.metadata.resourceVersion)).toBeGreaterThan(Number(resourceVersion));
    expect(updated.body.metadata.uid).toBe(uid);

    const gone = await api.call("DELETE", `${MAPS}/life`);
    expect(gone.body).toMatchObject({
      kind: "Status",
      status: "Success",
      details: { name: "life", kind: "configmaps", uid },
    });
    expect((await api.get(`${MAPS}/life`)).body).toMatchObject({
      code: 404,
      reason: "NotFound",
      message: 'configmaps "life" not found',
    });
  });

  it("a write that read an older version is refused, and one that changes nothing is not a write", async () => {
    const first = (await api.create(MAPS, configMap("fresh", { a: "1" }))).body;
    const same = (await api.call("PUT", `${MAPS}/fresh`, { body: first })).body;
    expect(same.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    await api.call("PUT", `${MAPS}/fresh`, { body: { ...first, data: { a: "2" } } });
    const stale = await api.call("PUT", `${MAPS}/fresh`, { body: { ...first, data: { a: "3" } } });
    expect(stale.status).toBe(409);
    expect(stale.body.message).toBe(
      'Operation cannot be fulfilled on configmaps "fresh": the object has been modified; please apply your changes to the latest version and try again',
    );
  });

  it("a name can be left to the server", async () => {
    const made = await api.create(MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "run-" } });
    expect(made.body.metadata.name).toMatch(/^run-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  });

  it("a dry run answers as if, and leaves nothing", async () => {
    const dry = await api.create(`${MAPS}?dryRun=All`, configMap("ghost"));
    expect(dry.status).toBe(201);
    expect((await api.get(`${MAPS}/ghost`)).status).toBe(404);
  });

  it("finalizers hold a deleted object until the last one is gone", async () => {
    await api.create(MAPS, { ...configMap("held"), metadata: { name: "held", finalizers: ["story.io/one"] } });
    const held = await api.call("DELETE", `${MAPS}/held`);
    expect(held.body.metadata.deletionTimestamp).toBeDefined();
    const refused = await api.call("PATCH", `${MAPS}/held`, {
      type: "application/merge-patch+json",
      body: { metadata: { finalizers: ["story.io/one", "story.io/two"] } },
    });
    expect(refused.status).toBe(422);
    await api.call("PATCH", `${MAPS}/held`, {
      type: "application/merge-patch+json",
      body: { metadata: { finalizers: null } },
    });
    expect((await api.get(`${MAPS}/held`)).status).toBe(404);
  });

  it("a delete can insist on the object it saw", async () => {
    await api.create(MAPS, configMap("sure"));
    const wrong = { kind: "DeleteOptions", apiVersion: "v1", preconditions: { uid: "another" } };
    expect((await api.call("DELETE", `${MAPS}/sure`, { body: wrong })).status).toBe(409);
    expect((await api.get(`${MAPS}/sure`)).status).toBe(200);
  });
});

describe("lists", () => {
  it("are selected by label and field, and cut into pages that stay consistent", async () => {
    await api.create("/api/v1/namespaces", namespace("pages"));
    const path = "/api/v1/namespaces/pages/configmaps";
    for (let i = 0; i < 5; i++) await api.create(path, configMap(`m${i}`, {}, { odd: String(i % 2) }));
    const odd = await api.get(`${path}?labelSelector=odd%3D1`);
    expect(odd.body.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(["m1", "m3"]);
    const one = await api.get(`${path}?fieldSelector=metadata.name%3Dm4`);
    expect(one.body.items).toHaveLength(1);

    const first = await api.get(`${path}?limit=2`);
    expect(first.body.metadata.remainingItemCount).toBe(3);
    await api.call("DELETE", `${path}/m2`);
    const second = await api.get(`${path}?limit=2&continue=${first.body.metadata.continue}`);
    expect(second.body.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(["m2", "m3"]);
    expect(second.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion);
  });

  it("a field that cannot be selected by is refused", async () => {
    const refused = await api.get(`${MAPS}?fieldSelector=data.a%3D1`);
    expect(refused.body).toMatchObject({ code: 400, message: "field label not supported: data.a" });
  });

  it("come as a table for people", async () => {
    await api.create(MAPS, configMap("shown", { a: "1", b: "2" }));
    const table = await api.call("GET", `${MAPS}?fieldSelector=metadata.name%3Dshown`, {
      headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" },
    });
    expect(table.body.kind).toBe("Table");
    expect(table.body.columnDefinitions.map((column: { name: string }) => column.name)).toEqual([
      "Name",
      "Data",
      "Age",
    ]);
    expect(table.body.rows[0].cells.slice(0, 2)).toEqual(["shown", 2]);
  });
});

describe("what is wrong with a request is said", () => {
  it("every problem at once, with its field", async () => {
    const bad = await api.create("/apis/apps/v1/namespaces/default/deployments", {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "Bad_Name" },
      spec: {
        replicas: -1,
        selector: { matchLabels: { app: "a" } },
        template: { metadata: { labels: { app: "b" } }, spec: { containers: [] } },
      },
    });
    expect(bad.status).toBe(422);
    const fields = bad.body.details.causes.map((cause: { field: string }) => cause.field);
    expect(fields).toEqual(
      expect.arrayContaining([
        "metadata.name",
        "spec.replicas",
        "spec.template.metadata.labels",
        "spec.template.spec.containers",
      ]),
    );
  });

  it("unknown and doubled fields are warned about, or refused when the client is strict", async () => {
    const text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"typo"},"data":{"a":"1","a":"2"},"dta":{}}';
    const warned = await api.call("POST", MAPS, { body: text });
    expect(warned.status).toBe(201);
    expect(warned.headers.get("warning")).toBe('299 - "duplicate field \\"data.a\\"", 299 - "unknown field \\"dta\\""');
    const strict = await api.call("POST", `${MAPS}?fieldValidation=Strict`, { body: text.replace("typo", "typo2") });
    expect(strict.body).toMatchObject({ code: 400, reason: "BadRequest" });
    expect(strict.body.message).toContain('unknown field "dta"');
  });

  it("a namespace that is not there, or is going, takes nothing new", async () => {
    const nowhere = await api.create("/api/v1/namespaces/nowhere/configmaps", configMap("x"));
    expect(nowhere.body).toMatchObject({ code: 404, message: 'namespaces "nowhere" not found' });
    await api.create("/api/v1/namespaces", namespace("going"));
    await api.call("DELETE", "/api/v1/namespaces/going");
    const refused = await api.create("/api/v1/namespaces/going/configmaps", configMap("x"));
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain("because it is being terminated");
  });

  it("a body that is not JSON, a path that is not served, a verb that is not known", async () => {
    expect((await api.call("POST", MAPS, { body: "{" })).status).toBe(400);
    expect((await api.get("/apis/nobody.io/v1/things")).status).toBe(404);
    expect(
      (await api.call("PUT", "/api/v1/namespaces/default/configmaps", { body: {} })).status,
    ).toBeGreaterThanOrEqual(400);
    const typed = await api.call("PATCH", `${MAPS}/x`, { body: {}, type: "application/json" });
    expect([404, 415]).toContain(typed.status);
  });
});
