import { describe, expect, it } from "vitest";
import type { Definitions, Schema } from "./schema.ts";
import { applyDefaults, pruneUnknown, validateAgainst } from "./schema-walk.ts";

/** A small custom resource, as a CRD would describe it. */
const gate: Schema = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      required: ["mode"],
      properties: {
        mode: { type: "string", enum: ["Open", "Closed"] },
        replicas: { type: "integer", format: "int32", minimum: 0, maximum: 5, default: 1 },
        host: { type: "string", pattern: "^[a-z]+$", maxLength: 8, minLength: 2 },
        port: { "x-kubernetes-int-or-string": true },
        since: { type: "string", format: "date-time" },
        note: { type: "string", nullable: true },
        labels: { type: "object", additionalProperties: { type: "string" } },
        tags: { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set", maxItems: 3 },
        rules: {
          type: "array",
          items: {
            type: "object",
            properties: { name: { type: "string" }, action: { type: "string", default: "Allow" } },
          },
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
        },
        free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        template: {
          type: "object",
          "x-kubernetes-embedded-resource": true,
          "x-kubernetes-preserve-unknown-fields": true,
        },
        nested: { type: "object", default: {}, properties: { size: { type: "integer", default: 7 } } },
      },
      oneOf: [{ required: ["host"] }, { required: ["port"] }],
    },
  },
};

const object = (spec: unknown) => ({
  apiVersion: "example.io/v1",
  kind: "Gate",
  metadata: { name: "g", creationTimestamp: null },
  spec,
});

const problems = (spec: unknown, definitions: Definitions = {}) =>
  validateAgainst(gate, definitions, object(spec)).map(({ path, message }) => `${path}: ${message}`);

describe("validating a custom resource", () => {
  it("has nothing to say about a good object", () => {
    expect(problems({ mode: "Open", host: "abc", replicas: 2, labels: { a: "b" }, note: null })).toEqual([]);
  });

  it("names every problem at once, in Kubernetes' words", () => {
    expect(
      problems({ mode: "Ajar", host: "Not-Good", replicas: "two", since: "yesterday", tags: ["a", "b", "a", "c"] }),
    ).toEqual([
      'spec.mode: Unsupported value: "Ajar": supported values: "Closed", "Open"',
      "spec.host: Invalid value: \"Not-Good\": spec.host in body should match '^[a-z]+$'",
      'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"',
      'spec.since: Invalid value: "yesterday": spec.since in body must be of type date-time: "yesterday"',
      "spec.tags: Too many: 4: must have at most 3 items",
      'spec.tags[2]: Duplicate value: "a"',
    ]);
  });

  it("asks for what is required, and for exactly one of the alternatives", () => {
    expect(problems({ host: "ab", port: "http" })).toEqual([
      "spec.mode: Required value",
      'spec: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives',
    ]);
  });

  it("measures numbers and texts", () => {
    expect(problems({ mode: "Open", replicas: 6, host: "abcdefghij" })).toEqual([
      "spec.replicas: Invalid value: 6: spec.replicas in body should be less than or equal to 5",
      "spec.host: Too long: may not be more than 8 bytes",
    ]);
    expect(problems({ mode: "Open", replicas: 1.5, host: "a" })).toEqual([
      'spec.replicas: Invalid value: "number": spec.replicas in body must be of type integer: "number"',
      'spec.host: Invalid value: "a": spec.host in body should be at least 2 chars long',
    ]);
  });

  it("refuses the same key twice in a keyed list", () => {
    const rules = [{ name: "a" }, { name: "b" }, { name: "a", action: "Deny" }];
    expect(problems({ mode: "Open", host: "ab", rules })).toEqual(['spec.rules[2]: Duplicate value: {"name":"a"}']);
  });

  it("accepts null only where the schema does", () => {
    expect(problems({ mode: null, host: "ab", note: null })).toEqual([
      'spec.mode: Invalid value: "null": spec.mode in body must be of type string: "null"',
    ]);
  });

  it("checks metadata although the schema does not describe it", () => {
    const named = { ...object({ mode: "Open", host: "ab" }), metadata: { name: "g", labels: { a: 1 } } };
    expect(validateAgainst(gate, {}, named).map((p) => p.path)).toEqual(["metadata.labels.a"]);
  });

  it("lists unknown fields when asked", () => {
    const found = validateAgainst(gate, {}, object({ mode: "Open", host: "ab", colour: 1 }), { unknownFields: true });
    expect(found).toEqual([
      { path: "spec.colour", kind: "unknown-field", message: 'unknown field "spec.colour"', value: 1 },
    ]);
  });

  it("wants an embedded resource to say what it is", () => {
    expect(problems({ mode: "Open", host: "ab", template: { kind: "Pod" } })).toEqual([
      "spec.template.apiVersion: Required value: must not be empty",
    ]);
  });
});

describe("pruning", () => {
  it("removes what the schema does not know and says where it was", () => {
    const given = object({ mode: "Open", colour: "red", rules: [{ name: "a", extra: {} }] });
    expect(pruneUnknown(gate, {}, given)).toEqual(["spec.colour", "spec.rules[0].extra"]);
    expect(given.spec).toEqual({ mode: "Open", rules: [{ name: "a" }] });
  });

  it("keeps what the schema tells it to keep, and the envelope of every object", () => {
    const given = object({
      free: { a: { b: 1 } },
      labels: { anything: "goes" },
      template: { apiVersion: "v1", kind: "Pod", metadata: { name: "p", bogus: 1 }, spec: { x: 1 } },
    });
    expect(pruneUnknown(gate, {}, given)).toEqual(["spec.template.metadata.bogus"]);
  });
});

describe("defaulting", () => {
  it("fills defaults, also inside defaults and list items", () => {
    const given = object({ mode: "Open", rules: [{ name: "a" }, { name: "b", action: "Deny" }] });
    applyDefaults(gate, {}, given);
    expect(given.spec).toEqual({
      mode: "Open",
      replicas: 1,
      rules: [
        { name: "a", action: "Allow" },
        { name: "b", action: "Deny" },
      ],
      nested: { size: 7 },
    });
  });

  it("takes a null that is not allowed as absent", () => {
    const given = object({ mode: null, replicas: null, note: null });
    applyDefaults(gate, {}, given);
    expect(given).toEqual({
      apiVersion: "example.io/v1",
      kind: "Gate",
      metadata: { name: "g" },
      spec: { replicas: 1, note: null, nested: { size: 7 } },
    });
  });

  it("never shares a default between two objects", () => {
    const [a, b] = [object({}), object({})];
    for (const each of [a, b]) applyDefaults(gate, {}, each);
    (a.spec as { nested: { size: number } }).nested.size = 9;
    expect(b.spec).toMatchObject({ nested: { size: 7 } });
  });
});

describe("Kubernetes' own types", () => {
  const definitions: Definitions = {
    Port: {
      type: "object",
      required: ["containerPort", "name"],
      properties: {
        name: { type: "string" },
        containerPort: { type: "integer", format: "int32" },
        protocol: { type: "string", default: "TCP", enum: ["TCP", "UDP"] },
        limit: { type: "string", format: "quantity" },
      },
    },
  };
  const pod: Schema = {
    type: "object",
    properties: {
      ports: {
        type: "array",
        items: { $ref: "#/definitions/Port" },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
      },
    },
  };

  it("are reached by reference and read as Go reads them: absent numbers and repeated items are fine", () => {
    const given = { ports: [{ name: "a" }, { name: "b", protocol: "", limit: 5 }, { name: "b", limit: "1.5Gi" }] };
    expect(validateAgainst(pod, definitions, given)).toEqual([]);
    expect(validateAgainst(pod, definitions, { ports: [{ limit: "lots" }] }).map((p) => p.path)).toEqual([
      "ports[0].name",
      "ports[0].limit",
    ]);
  });

  it("get their defaults", () => {
    const given = { ports: [{ name: "a", containerPort: 80 }] };
    applyDefaults(pod, definitions, given);
    expect(given.ports[0]).toEqual({ name: "a", containerPort: 80, protocol: "TCP" });
  });
});
