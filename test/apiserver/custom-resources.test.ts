import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Api, owners, startApi } from "../support/api.ts";

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const schema = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      required: ["size"],
      properties: {
        size: { type: "integer", minimum: 1 },
        mode: { type: "string", enum: ["Fast", "Slow"], default: "Fast" },
        replicas: { type: "integer" },
        rules: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
          items: {
            type: "object",
            required: ["name"],
            properties: { name: { type: "string" }, port: { "x-kubernetes-int-or-string": true } },
          },
        },
      },
    },
    status: { type: "object", properties: { phase: { type: "string" }, replicas: { type: "integer" } } },
  },
};

const definition = (kind: string, openAPIV3Schema: unknown = schema) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `${kind.toLowerCase()}s.story.io` },
  spec: {
    group: "story.io",
    scope: "Namespaced",
    names: { kind, plural: `${kind.toLowerCase()}s`, shortNames: [kind.slice(0, 2).toLowerCase()] },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema },
        subresources: {
          status: {},
          scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" },
        },
        additionalPrinterColumns: [
          { name: "Size", type: "integer", jsonPath: ".spec.size" },
          { name: "Phase", type: "string", jsonPath: ".status.phase" },
        ],
      },
      { name: "v1beta1", served: true, storage: false, schema: { openAPIV3Schema } },
    ],
  },
});

let api: Api;
beforeAll(async () => {
  api = await startApi();
  await api.create(CRDS, definition("Widget"));
});
afterAll(() => api.close());

const WIDGETS = "/apis/story.io/v1/namespaces/default/widgets";
const widget = (name: string, spec: Record<string, unknown>) => ({
  apiVersion: "story.io/v1",
  kind: "Widget",
  metadata: { name },
  spec,
});

describe("a custom resource", () => {
  it("is served as soon as its definition is stored, and the definition says so", async () => {
    const { body } = await api.get(`${CRDS}/widgets.story.io`);
    const conditions = Object.fromEntries(
      body.status.conditions.map((one: { type: string; status: string }) => [one.type, one.status]),
    );
    expect(conditions).toEqual({ NamesAccepted: "True", Established: "True" });
    expect(body.status.storedVersions).toEqual(["v1"]);
    const group = await api.get("/apis/story.io");
    expect(group.body.preferredVersion.version).toBe("v1");
    const resources = await api.get("/apis/story.io/v1");
    expect(resources.body.resources.map((one: { name: string }) => one.name)).toEqual([
      "widgets",
      "widgets/status",
      "widgets/scale",
    ]);
  });

  it("gets defaults, loses unknown fields, and hears of every mistake at once", async () => {
    const made = await api.create(WIDGETS, widget("good", { size: 1, typo: true }));
    expect(made.body.spec).toEqual({ size: 1, mode: "Fast" });
    expect(made.headers.get("warning")).toContain('unknown field \\"spec.typo\\"');
    const bad = await api.create(
      WIDGETS,
      widget("bad", { size: 0, mode: "Medium", rules: [{ name: "a" }, { name: "a" }] }),
    );
    expect(bad.status).toBe(422);
    const said = bad.body.details.causes.map((cause: { field: string }) => cause.field);
    expect(said).toEqual(expect.arrayContaining(["spec.size", "spec.mode", "spec.rules[1]"]));
  });

  it("loses what is stored of it and a newer definition does not have", async () => {
    const spec = (fields: object) => ({ type: "object", properties: { spec: { type: "object", properties: fields } } });
    const old = definition("Relic", spec({ kept: { type: "string" }, gone: { type: "string" } }));
    await api.create(CRDS, old);
    const relics = "/apis/story.io/v1/namespaces/default/relics";
    const relic = {
      apiVersion: "story.io/v1",
      kind: "Relic",
      metadata: { name: "one" },
      spec: { kept: "a", gone: "b" },
    };
    expect((await api.create(relics, relic)).body.spec).toEqual({ kept: "a", gone: "b" });
    const { body } = await api.get(`${CRDS}/relics.story.io`);
    const newer = { ...body, spec: definition("Relic", spec({ kept: { type: "string" } })).spec };
    expect((await api.call("PUT", `${CRDS}/relics.story.io`, { body: newer })).status).toBe(200);
    expect((await api.get(`${relics}/one`)).body.spec).toEqual({ kept: "a" });
    await api.call("DELETE", `${CRDS}/relics.story.io`);
  });

  it("counts generations for what was asked, not for what was reported", async () => {
    const made = (await api.create(WIDGETS, widget("gen", { size: 1 }))).body;
    expect(made.metadata.generation).toBe(1);
    const reported = await api.call("PUT", `${WIDGETS}/gen/status`, {
      body: { ...made, spec: { size: 9 }, status: { phase: "Up" } },
    });
    expect(reported.body).toMatchObject({ spec: { size: 1 }, status: { phase: "Up" }, metadata: { generation: 1 } });
    const asked = await api.call("PATCH", `${WIDGETS}/gen`, {
      type: "application/merge-patch+json",
      body: { spec: { size: 2 }, status: { phase: "Down" } },
    });
    expect(asked.body).toMatchObject({ spec: { size: 2 }, status: { phase: "Up" }, metadata: { generation: 2 } });
  });

  it("is the same object in every served version", async () => {
    await api.create(WIDGETS, widget("versions", { size: 3 }));
    const beta = await api.get("/apis/story.io/v1beta1/namespaces/default/widgets/versions");
    expect(beta.body).toMatchObject({ apiVersion: "story.io/v1beta1", spec: { size: 3 } });
    const list = await api.get("/apis/story.io/v1beta1/namespaces/default/widgets");
    expect(new Set(list.body.items.map((one: { apiVersion: string }) => one.apiVersion))).toEqual(
      new Set(["story.io/v1beta1"]),
    );
  });

  it("is applied by several managers, lists merged by their key", async () => {
    await api.apply("alice", `${WIDGETS}/team`, widget("team", { size: 1, rules: [{ name: "a", port: 80 }] }));
    const both = await api.apply(
      "bob",
      `${WIDGETS}/team`,
      widget("team", { size: 1, rules: [{ name: "b", port: "http" }] }),
    );
    expect(both.body.spec.rules).toEqual([
      { name: "a", port: 80 },
      { name: "b", port: "http" },
    ]);
    expect(owners(both.body)).toMatchObject({
      "bob (Apply)": { "f:spec": { "f:size": {}, "f:rules": { 'k:{"name":"b"}': {} } } },
    });
    const fight = await api.apply("bob", `${WIDGETS}/team`, widget("team", { size: 2 }));
    expect(fight.body.message).toBe('Apply failed with 1 conflict: conflict with "alice": .spec.size');
  });

  it("scales, prints columns, and takes no strategic patch", async () => {
    await api.create(WIDGETS, widget("wide", { size: 4, replicas: 1 }));
    const scaled = await api.call("PUT", `${WIDGETS}/wide/scale`, {
      body: { apiVersion: "autoscaling/v1", kind: "Scale", metadata: { name: "wide" }, spec: { replicas: 6 } },
    });
    expect(scaled.body.spec.replicas).toBe(6);
    const table = await api.call("GET", `${WIDGETS}/wide`, {
      headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" },
    });
    expect(table.body.columnDefinitions.map((one: { name: string }) => one.name)).toEqual(["Name", "Size", "Phase"]);
    const strategic = await api.call("PATCH", `${WIDGETS}/wide`, {
      body: {},
      type: "application/strategic-merge-patch+json",
    });
    expect(strategic.status).toBe(415);
  });
});

describe("definitions", () => {
  it("one that is not structural is refused with the reason", async () => {
    const refused = await api.create(
      CRDS,
      definition("Loose", { type: "object", properties: { spec: { properties: { a: { type: "string" } } } } }),
    );
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain(
      "spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value",
    );
  });

  it("a deleted definition takes its objects along, waiting for their finalizers", async () => {
    await api.create(CRDS, definition("Gadget"));
    const path = "/apis/story.io/v1/namespaces/default/gadgets";
    const gadget = {
      apiVersion: "story.io/v1",
      kind: "Gadget",
      metadata: { name: "g", finalizers: ["story.io/hold"] },
      spec: { size: 1 },
    };
    await api.create(path, gadget);
    await api.call("DELETE", `${CRDS}/gadgets.story.io`);
    expect((await api.get(`${CRDS}/gadgets.story.io`)).body.metadata.deletionTimestamp).toBeDefined();
    await api.call("PATCH", `${path}/g`, {
      type: "application/merge-patch+json",
      body: { metadata: { finalizers: null } },
    });
    expect((await api.get(`${CRDS}/gadgets.story.io`)).status).toBe(404);
    expect((await api.get(path)).status).toBe(404);
  });
});
