import { describe, expect, it } from "vitest";
import { kubernetesKinds } from "./kubernetes/kinds.ts";
import { openApiV2, openApiV3 } from "./openapi.ts";
import { encodeDefinition, encodeDocument, encodePath } from "./openapi-protobuf.ts";
import { ALL_VERBS, type ServedKind } from "./resource.ts";

const installation: ServedKind = {
  group: "operator.vendor.io",
  version: "v1",
  kind: "Installation",
  plural: "installations",
  singular: "installation",
  namespaced: false,
  shortNames: [],
  categories: [],
  custom: true,
  definitions: {},
  verbs: ALL_VERBS,
  status: true,
  columns: [],
  selectable: {},
  strategy: {},
  schema: {
    type: "object",
    description: "Installs the network.",
    properties: {
      metadata: { type: "object" },
      spec: {
        type: "object",
        properties: {
          mtu: { type: "integer", nullable: true, description: "Largest packet." },
          mode: { type: "string", enum: ["A", "B"], default: "A" },
          port: { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] },
        },
      },
    },
  },
};

const kinds = [...kubernetesKinds(), installation];
const NAME = "io.vendor.operator.v1.Installation";

interface Described {
  paths: Record<string, Record<string, Record<string, unknown>>>;
  definitions: Record<string, Record<string, unknown>>;
  components: { schemas: Record<string, Record<string, unknown>> };
}

const v2 = () => JSON.parse(openApiV2(kinds).json()) as Described;
const v3 = (groupVersion: string) => JSON.parse(openApiV3(kinds).document(groupVersion)!) as Described;

describe("OpenAPI v2", () => {
  it("names types as Kubernetes does, and says which kind each one is", () => {
    const { definitions } = v2();
    expect(definitions["io.k8s.api.core.v1.Pod"]!["x-kubernetes-group-version-kind"]).toEqual([
      { group: "", kind: "Pod", version: "v1" },
    ]);
    expect(definitions["io.k8s.api.core.v1.PodList"]).toBeDefined();
    expect(definitions[NAME]!["x-kubernetes-group-version-kind"]).toEqual([
      { group: "operator.vendor.io", kind: "Installation", version: "v1" },
    ]);
  });

  it("keeps from old clients what they would stumble over", () => {
    expect(v2().definitions[NAME]).toMatchObject({
      properties: {
        metadata: { $ref: "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" },
        spec: {
          properties: {
            mtu: { description: "Largest packet." },
            mode: { type: "string", default: "A" },
            port: { "x-kubernetes-int-or-string": true },
          },
        },
      },
    });
    expect(JSON.stringify(v2().definitions[NAME])).not.toContain('"nullable"');
  });

  it("only refers to what it defines", () => {
    const { definitions, paths } = v2();
    const used = [...JSON.stringify({ definitions, paths }).matchAll(/"#\/definitions\/([^"]+)"/g)].map((m) => m[1]!);
    expect(used.filter((name) => definitions[name] === undefined)).toEqual([]);
  });

  it("says that a patch can be tried without doing it: kubectl looks here before --dry-run=server", () => {
    const patch = v2().paths["/apis/operator.vendor.io/v1/installations/{name}"]!["patch"]!;
    expect(patch).toMatchObject({
      "x-kubernetes-action": "patch",
      "x-kubernetes-group-version-kind": { group: "operator.vendor.io", version: "v1", kind: "Installation" },
    });
    const names = (patch["parameters"] as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["dryRun", "fieldManager", "fieldValidation", "force"]));
    expect(patch["consumes"]).not.toContain("application/strategic-merge-patch+json");
  });
});

/** Reads any protobuf message as far as wire types go: field number to values. */
function fields(message: Buffer): Map<number, Buffer[]> {
  const found = new Map<number, Buffer[]>();
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = message[at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const key = varint();
    const length = key % 8 === 2 ? varint() : key % 8 === 1 ? 8 : 0;
    const content = key % 8 === 0 ? Buffer.from(String(varint())) : message.subarray(at, at + length);
    at += length;
    found.set(Math.floor(key / 8), [...(found.get(Math.floor(key / 8)) ?? []), content]);
  }
  expect(at).toBe(message.length);
  return found;
}

const inside = (message: Buffer, ...path: number[]): Buffer =>
  path.reduce((at, field) => fields(at).get(field)![0]!, message);

describe("OpenAPI v2 in binary", () => {
  it("is gnostic's Document: version, title, paths, definitions", () => {
    const document = openApiV2(kinds).protobuf();
    expect(inside(document, 1).toString()).toBe("2.0");
    expect(inside(document, 2, 1).toString()).toBe("Kubernetes");
    const { paths, definitions } = v2();
    expect(
      fields(inside(document, 8))
        .get(2)!
        .map((one) => inside(one, 1).toString()),
    ).toEqual(Object.keys(paths));
    expect(
      fields(inside(document, 9))
        .get(1)!
        .map((one) => inside(one, 1).toString()),
    ).toEqual(Object.keys(definitions));
  });

  it("carries types, properties, references and extensions", () => {
    const type = {
      type: "object",
      description: "d",
      required: ["a"],
      properties: { a: { $ref: "#/definitions/X" }, b: { type: "array", items: { type: "string" } } },
      "x-kubernetes-group-version-kind": [{ kind: "T" }],
    };
    const schema = inside(encodeDocument({ title: "t", version: "v" }, [], [encodeDefinition("T", type)]), 9, 1, 2);
    expect(inside(schema, 22, 1).toString()).toBe("object");
    expect(inside(schema, 19).toString()).toBe("a");
    expect(inside(schema, 25, 1, 2, 1).toString()).toBe("#/definitions/X");
    expect(inside(schema, 31, 1).toString()).toBe("x-kubernetes-group-version-kind");
    expect(inside(schema, 31, 2, 2).toString()).toBe('[{"kind":"T"}]\n');
  });

  it("carries operations with their parameters", () => {
    const patch = {
      parameters: [{ name: "dryRun", in: "query", type: "string" }],
      responses: { 200: { description: "OK" } },
    };
    const path = inside(encodeDocument({ title: "t", version: "v" }, [encodePath("/a", { patch })], []), 8, 2);
    expect(inside(path, 1).toString()).toBe("/a");
    expect(inside(path, 2, 8, 8, 1, 2, 3, 4).toString()).toBe("dryRun");
  });
});

describe("OpenAPI v3", () => {
  it("has an index with one document for each group and version", () => {
    const { index, document } = openApiV3(kinds);
    expect(Object.keys(index.paths)).toEqual(
      expect.arrayContaining(["api/v1", "apis/apps/v1", "apis/operator.vendor.io/v1"]),
    );
    expect(index.paths["api/v1"]!.serverRelativeURL).toMatch(/^\/openapi\/v3\/api\/v1\?hash=[0-9A-F]{64}$/);
    expect(document("nobody/v1")).toBeUndefined();
  });

  it("tells clients that one document changed, and leaves them the others", () => {
    const before = openApiV3(kinds).index.paths;
    const changed = { ...installation, schema: { ...installation.schema, description: "Other words." } };
    const after = openApiV3([...kinds.slice(0, -1), changed]).index.paths;
    const moved = Object.keys(before).filter(
      (path) => before[path]!.serverRelativeURL !== after[path]!.serverRelativeURL,
    );
    expect(moved).toEqual(["apis/operator.vendor.io/v1"]);
  });

  it("describes a group's kinds and all they refer to, and nothing else", () => {
    const { schemas } = v3("apps/v1").components;
    expect(schemas["io.k8s.api.apps.v1.Deployment"]).toBeDefined();
    expect(schemas["io.k8s.api.core.v1.Container"]).toBeDefined();
    expect(schemas["io.k8s.api.rbac.v1.Role"]).toBeUndefined();
    const used = [...JSON.stringify(schemas).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map((m) => m[1]!);
    expect(used.filter((name) => schemas[name] === undefined)).toEqual([]);
  });

  it("keeps all a custom resource says of itself", () => {
    const { schemas } = v3("operator.vendor.io/v1").components;
    expect(schemas[NAME]).toMatchObject({
      properties: {
        spec: {
          properties: {
            mtu: { type: "integer", nullable: true },
            mode: { enum: ["A", "B"] },
            port: { anyOf: [{ type: "integer" }, { type: "string" }] },
          },
        },
      },
    });
  });
});
