import { describe, expect, it } from "vitest";
import type { Schema } from "./schema.ts";
import { structuralProblems } from "./schema-structural.ts";

const problems = (spec: Schema) =>
  structuralProblems({ type: "object", properties: { spec } }, "schema").map((p) => `${p.path}: ${p.message}`);

describe("a CRD's schema must be structural", () => {
  it("accepts one that is", () => {
    expect(
      problems({
        type: "object",
        required: ["mode"],
        properties: {
          mode: { type: "string", default: "Open" },
          port: { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] },
          free: { "x-kubernetes-preserve-unknown-fields": true },
          rules: {
            type: "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            items: { type: "object", required: ["name"], properties: { name: { type: "string" } } },
          },
        },
        oneOf: [{ required: ["mode"] }, { properties: { mode: { enum: ["Open"] } } }],
      }),
    ).toEqual([]);
  });

  it("wants a type everywhere", () => {
    expect(problems({ properties: { a: {}, b: { type: "array", items: {} } } })).toEqual([
      "schema.properties[spec].type: Required value: must not be empty for specified object fields",
      "schema.properties[spec].properties[a].type: Required value: must not be empty for specified object fields",
      "schema.properties[spec].properties[b].items.type: Required value: must not be empty for specified array items",
    ]);
    expect(structuralProblems({}, "schema").map((p) => p.path)).toEqual(["schema.type"]);
  });

  it("refuses references, mixed maps and unique items", () => {
    const mixed: Schema = {
      type: "object",
      properties: { a: { type: "string", $ref: "#/x" } },
      additionalProperties: { type: "string" },
    };
    expect(problems(mixed)).toEqual([
      "schema.properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
      "schema.properties[spec].properties[a].$ref: Forbidden: $ref is not supported",
    ]);
  });

  it("refuses a default that the schema would not accept", () => {
    expect(problems({ type: "object", properties: { n: { type: "integer", default: "two" } } })).toEqual([
      'schema.properties[spec].properties[n].default: Invalid value: "string": schema.properties[spec].properties[n].default in body must be of type integer: "string"',
    ]);
  });

  it("wants list keys that are there on every item", () => {
    const list = (items: Schema): Schema => ({
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      items,
    });
    expect(problems(list({ type: "object", properties: { name: { type: "string" } } }))).toEqual([
      "schema.properties[spec].items.properties[name].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
    ]);
    expect(problems(list({ type: "object", properties: {} }))).toEqual([
      'schema.properties[spec].x-kubernetes-list-map-keys: Invalid value: "name": entries must all be names of item properties',
    ]);
  });

  it("lets conditions narrow the structure, not add to it", () => {
    expect(problems({ type: "object", anyOf: [{ type: "object", properties: { ghost: { minLength: 1 } } }] })).toEqual([
      "schema.properties[spec].anyOf[0].type: Forbidden: must be empty to be structural",
      "schema.properties[spec].anyOf[0].properties[ghost]: Required value: must also be specified outside of the condition to be structural",
    ]);
  });

  it("leaves metadata to the server", () => {
    const metadata: Schema = { type: "object", properties: { labels: { type: "object" } } };
    expect(structuralProblems({ type: "object", properties: { metadata } }, "schema").map((p) => p.path)).toEqual([
      "schema.properties[metadata]",
    ]);
  });
});
