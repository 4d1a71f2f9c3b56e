import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Api, owners, startApi } from "../support/api.ts";

/** Server-side apply as clients see it: over HTTP, on Kubernetes' own kinds, with two and three managers. */

const DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments";
let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const deployment = (name: string, spec: Record<string, unknown>) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name },
  spec,
});
const web = (name: string, container: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  deployment(name, {
    ...more,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { containers: [{ name: "web", image: "web:1", ...container }] },
    },
  });

describe("two managers of one Deployment", () => {
  it("each owns what it applied, lists are merged by key, and defaults belong to nobody", async () => {
    const path = `${DEPLOYMENTS}/shared`;
    const created = await api.apply("alice", path, web("shared", { env: [{ name: "A", value: "1" }] }));
    expect(created.status).toBe(201);
    const joined = await api.apply("bob", path, {
      ...deployment("shared", {
        template: {
          spec: { containers: [{ name: "web", env: [{ name: "B", value: "2" }], ports: [{ containerPort: 80 }] }] },
        },
      }),
    });
    expect(joined.status).toBe(200);
    const container = joined.body.spec.template.spec.containers[0];
    expect(container.env).toEqual([
      { name: "A", value: "1" },
      { name: "B", value: "2" },
    ]);
    expect(container.ports).toEqual([{ containerPort: 80, protocol: "TCP" }]);
    expect(joined.body.spec.replicas).toBe(1);
    expect(owners(joined.body)).toMatchObject({
      "bob (Apply)": {
        "f:spec": {
          "f:template": {
            "f:spec": {
              "f:containers": {
                'k:{"name":"web"}': {
                  ".": {},
                  "f:env": { 'k:{"name":"B"}': { ".": {}, "f:name": {}, "f:value": {} } },
                  "f:name": {},
                  "f:ports": { 'k:{"containerPort":80,"protocol":"TCP"}': { ".": {}, "f:containerPort": {} } },
                },
              },
            },
          },
        },
      },
    });
    expect(JSON.stringify(owners(joined.body))).not.toContain("f:replicas");
  });

  it("a field somebody else owns is a conflict that names them, and force takes it", async () => {
    const path = `${DEPLOYMENTS}/fought`;
    await api.apply("alice", path, web("fought", {}, { replicas: 2 }));
    const refused = await api.apply("bob", path, deployment("fought", { replicas: 5 }));
    expect(refused.status).toBe(409);
    expect(refused.body.message).toBe('Apply failed with 1 conflict: conflict with "alice": .spec.replicas');
    expect(refused.body.details.causes).toEqual([
      { reason: "FieldManagerConflict", message: 'conflict with "alice"', field: ".spec.replicas" },
    ]);
    expect((await api.get(path)).body.spec.replicas).toBe(2);

    const forced = await api.apply("bob", path, deployment("fought", { replicas: 5 }), { force: true });
    expect(forced.body.spec.replicas).toBe(5);
    expect(JSON.stringify(owners(forced.body)["alice (Apply)"])).not.toContain("f:replicas");
    const again = await api.apply("alice", path, web("fought", {}));
    expect(again.body.spec.replicas).toBe(5);
  });

  it("what a manager no longer applies goes, unless another shares it", async () => {
    const path = `${DEPLOYMENTS}/dropped`;
    await api.apply(
      "alice",
      path,
      web("dropped", {
        env: [
          { name: "A", value: "1" },
          { name: "B", value: "2" },
        ],
      }),
    );
    await api.apply("bob", path, web("dropped", { env: [{ name: "B", value: "2" }] }));
    const less = await api.apply("alice", path, web("dropped", {}));
    expect(less.body.spec.template.spec.containers[0].env).toEqual([{ name: "B", value: "2" }]);
  });

  it("applying the same again writes nothing", async () => {
    const path = `${DEPLOYMENTS}/steady`;
    const first = await api.apply("alice", path, web("steady", {}));
    const second = await api.apply("alice", path, web("steady", {}));
    expect(second.body.metadata).toEqual(first.body.metadata);
  });
});

it("applying again what the server does not keep, an empty list, writes nothing either", async () => {
  let minutes = 0;
  const now = () => new Date(Date.UTC(2024, 0, 1, 0, minutes++));
  const later = await startApi({ now });
  const path = `${DEPLOYMENTS}/bare`;
  const bare = web("bare", { env: [], volumeMounts: [] });
  const first = (await later.apply("alice", path, bare)).body;
  expect(first.spec.template.spec.containers[0]).not.toHaveProperty("env");
  expect((await later.apply("alice", path, bare)).body).toEqual(first);
  await later.close();
});

describe("three managers", () => {
  it("a person applies, a scaler updates, a mesh adds a sidecar: nobody loses anything", async () => {
    const path = `${DEPLOYMENTS}/busy`;
    await api.apply("kubectl", path, web("busy", { image: "web:1" }));
    await api.call("PATCH", `${path}/scale`, {
      type: "application/merge-patch+json",
      body: { spec: { replicas: 7 } },
      headers: { "user-agent": "scaler/1" },
    });
    await api.apply(
      "mesh",
      path,
      deployment("busy", {
        template: {
          metadata: { annotations: { "mesh.io/status": "injected" } },
          spec: { containers: [{ name: "proxy", image: "proxy:1" }], volumes: [{ name: "certs", emptyDir: {} }] },
        },
      }),
    );
    const rolled = await api.apply("kubectl", path, web("busy", { image: "web:2" }));
    const { spec } = rolled.body;
    expect(spec.replicas).toBe(7);
    expect(
      spec.template.spec.containers.map((one: { name: string; image: string }) => `${one.name}=${one.image}`),
    ).toEqual(["web=web:2", "proxy=proxy:1"]);
    expect(spec.template.spec.volumes).toEqual([{ name: "certs", emptyDir: {} }]);
    expect(Object.keys(owners(rolled.body)).sort()).toEqual([
      "kubectl (Apply)",
      "mesh (Apply)",
      "scaler (Update through scale)",
    ]);

    const grab = await api.apply("kubectl", path, web("busy", { image: "web:2" }, { replicas: 1 }));
    expect(grab.body.message).toBe(
      'Apply failed with 1 conflict: conflict with "scaler" with subresource "scale" using apps/v1: .spec.replicas',
    );
  });

  it("several conflicts are listed owner by owner", async () => {
    const path = `${DEPLOYMENTS}/contested`;
    await api.apply("alice", path, web("contested", {}, { replicas: 2 }));
    await api.apply("bob", path, deployment("contested", { minReadySeconds: 5, revisionHistoryLimit: 3 }));
    const refused = await api.apply(
      "carol",
      path,
      deployment("contested", { replicas: 9, minReadySeconds: 9, revisionHistoryLimit: 9 }),
    );
    expect(refused.body.message).toBe(
      'Apply failed with 3 conflicts: conflicts with "alice":\n- .spec.replicas\nconflicts with "bob":\n- .spec.minReadySeconds\n- .spec.revisionHistoryLimit',
    );
    expect(refused.body.details.causes).toHaveLength(3);
  });

  it("three controllers keep a condition each in one status", async () => {
    const path = `${DEPLOYMENTS}/watched`;
    await api.apply("alice", path, web("watched", {}));
    const condition = (type: string) => ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "watched" },
      status: {
        conditions: [{ type, status: "True", lastUpdateTime: null, lastTransitionTime: "2026-01-01T00:00:00Z" }],
      },
    });
    for (const type of ["Available", "Progressing", "Audited"]) {
      const { status } = await api.apply(`${type.toLowerCase()}-controller`, path, condition(type), {
        subresource: "status",
      });
      expect(status).toBe(200);
    }
    const { body } = await api.get(path);
    expect(body.status.conditions.map((one: { type: string }) => one.type)).toEqual([
      "Available",
      "Progressing",
      "Audited",
    ]);
    expect(body.metadata.generation).toBe(1);
    expect(owners(body)).toMatchObject({
      "audited-controller (Apply through status)": {
        "f:status": { "f:conditions": { 'k:{"type":"Audited"}': { "f:status": {}, "f:type": {} } } },
      },
    });
  });
});

describe("the rules around apply", () => {
  it("needs a manager, the right name, and no managedFields", async () => {
    const path = `${DEPLOYMENTS}/ruled`;
    const body = web("ruled", {});
    const type = "application/apply-patch+yaml";
    expect((await api.call("PATCH", path, { body, type })).body.message).toContain("fieldManager: Required value");
    expect((await api.apply("alice", path, web("other", {}))).status).toBe(400);
    const managed = { ...body, metadata: { name: "ruled", managedFields: [{ manager: "x", operation: "Apply" }] } };
    expect((await api.apply("alice", path, managed)).body.message).toContain("managedFields must be nil");
  });

  it("takes YAML, as its content type says", async () => {
    const yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\ndata:\n  a: '1'\n";
    const made = await api.call("PATCH", "/api/v1/namespaces/default/configmaps/y?fieldManager=alice", {
      body: yaml,
      type: "application/apply-patch+yaml",
    });
    expect(made.body.data).toEqual({ a: "1" });
    const tab = await api.call("PATCH", "/api/v1/namespaces/default/configmaps/z?fieldManager=alice", {
      body: "kind: ConfigMap\n\tmetadata: {}\n",
      type: "application/apply-patch+yaml",
    });
    expect(tab.status).toBe(400);
    expect(tab.body.message).toContain("error parsing YAML");
  });

  it("an object that was only ever updated keeps its fields at the first apply", async () => {
    const maps = "/api/v1/namespaces/default/configmaps";
    await api.create(maps, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "old" },
      data: { a: "1", b: "2" },
    });
    const applied = await api.apply("alice", `${maps}/old`, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "old" },
      data: { a: "1" },
    });
    expect(applied.body.data).toEqual({ a: "1", b: "2" });
    expect(owners(applied.body)).toEqual({
      "alice (Apply)": { "f:data": { "f:a": {} } },
      "story (Update)": { "f:data": { ".": {}, "f:a": {}, "f:b": {} } },
    });
  });
});
