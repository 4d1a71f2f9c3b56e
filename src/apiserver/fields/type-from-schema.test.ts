import { describe, expect, it } from "vitest";
import type { Definitions, Schema } from "../../api/schema/schema.ts";
import { toFieldSet } from "./to-field-set.ts";
import { typeFromSchema } from "./type-from-schema.ts";
import { validate } from "./validate.ts";

const text: Schema = { type: "string" };

/** What owning a `spec` of this schema looks like. */
function owned(spec: Schema, value: unknown, definitions: Definitions = {}): unknown {
  const type = typeFromSchema({ type: "object", properties: { spec } }, definitions);
  const object = { spec: value };
  expect(validate(type, object, { allowDuplicates: false })).toEqual([]);
  return toFieldSet(type, object)["f:spec"];
}

describe("how a schema says what can be owned apart", () => {
  it.each<[string, Schema, unknown, unknown]>([
    ["a list without a type is one value", { type: "array", items: text }, ["a"], {}],
    ["a set by item", { type: "array", items: text, "x-kubernetes-list-type": "set" }, ["a"], { 'v:"a"': {} }],
    [
      "a list of maps by key, defaults standing in",
      {
        type: "array",
        items: { type: "object", properties: { port: { type: "integer" }, proto: { ...text, default: "TCP" } } },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "proto"],
      },
      [{ port: 80 }],
      { 'k:{"port":80,"proto":"TCP"}': { ".": {}, "f:port": {} } },
    ],
    [
      "an old type by its patch strategy",
      {
        type: "array",
        items: { type: "object", properties: { name: text } },
        "x-kubernetes-patch-strategy": "merge,retainKeys",
        "x-kubernetes-patch-merge-key": "name",
      },
      [{ name: "a" }],
      { 'k:{"name":"a"}': { ".": {}, "f:name": {} } },
    ],
    [
      "an atomic map as one value",
      { type: "object", additionalProperties: text, "x-kubernetes-map-type": "atomic" },
      { a: "b" },
      {},
    ],
    [
      "unknown fields one by one",
      { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      { a: { b: [1] } },
      { "f:a": { ".": {}, "f:b": {} } },
    ],
    ["a number or a string", { "x-kubernetes-int-or-string": true }, "50%", {}],
    ["a quantity, written either way", { type: "string", format: "quantity" }, 2, {}],
    [
      "an object inside an object has metadata of its own",
      { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
      { kind: "Pod", metadata: { finalizers: ["x"] }, data: 1 },
      { "f:data": {}, "f:kind": {}, "f:metadata": { "f:finalizers": { 'v:"x"': {} } } },
    ],
  ])("%s", (_, schema, value, expected) => {
    expect(owned(schema, value)).toEqual(expected);
  });

  it("follows definitions that contain themselves", () => {
    const definitions: Definitions = {
      Props: {
        type: "object",
        properties: {
          title: text,
          properties: { type: "object", additionalProperties: { $ref: "#/definitions/Props" } },
        },
      },
    };
    const value = { properties: { spec: { properties: { size: { title: "Size" } } } } };
    expect(owned({ $ref: "#/definitions/Props" }, value, definitions)).toEqual({
      "f:properties": { "f:spec": { ".": {}, "f:properties": { "f:size": { ".": {}, "f:title": {} } } } },
    });
  });

  it("refuses fields the schema does not declare", () => {
    const type = typeFromSchema({ type: "object", properties: { spec: { type: "object", properties: {} } } }, {});
    expect(validate(type, { spec: {}, stat: 1 }, { allowDuplicates: false })).toEqual([
      ".stat: field not declared in schema",
    ]);
  });
});
