import { describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { fieldChanges } from "./field-changes.ts";
import { ownerOf } from "./field-owner.ts";

const agent = (image: string, env: string) => ({
  spec: { containers: [{ name: "agent", image, env: [{ name: "MTU", value: env }] }, { name: "other" }] },
});

const live: KubeObject = {
  apiVersion: "v1",
  kind: "Pod",
  ...agent("v1", "1"),
  metadata: {
    name: "p",
    managedFields: [
      {
        manager: "chart",
        operation: "Apply",
        fieldsV1: {
          "f:spec": { "f:containers": { 'k:{"name":"agent"}': { ".": {}, "f:image": {} } }, "f:labels": {} },
        },
      },
      {
        manager: "somebody",
        operation: "Update",
        fieldsV1: {
          "f:spec": {
            "f:containers": { 'k:{"name":"agent"}': { "f:env": { 'k:{"name":"MTU"}': { "f:value": {} } } } },
          },
        },
      },
    ],
  },
};

describe("what a change touches", () => {
  it("is the smallest fields, with list items by their names, each with its owner", () => {
    const changes = fieldChanges(agent("v1", "1"), agent("v2", "2"));
    expect(changes.map(({ field, path }) => [field, ownerOf(live, path)])).toEqual([
      ["spec.containers[name=agent].image", "chart"],
      ["spec.containers[name=agent].env[name=MTU].value", "somebody"],
    ]);
  });

  it.each([
    ["a field that comes", { a: 1 }, { a: 1, b: 2 }, ["b"]],
    ["a field that goes", { a: { b: 1 } }, { a: {} }, ["a.b"]],
    ["a key with dots", { "a.b/c": 1 }, { "a.b/c": 2 }, ['["a.b/c"]']],
    ["a list without names", { a: [1, 2] }, { a: [1] }, ["a"]],
    ["an item that comes", { a: [{ name: "x" }] }, { a: [{ name: "x" }, { name: "y" }] }, ["a[name=y]"]],
    ["nothing", { a: [1] }, { a: [1] }, []],
  ])("%s", (_what, before, after, fields) => {
    expect(fieldChanges(before, after).map(({ field }) => field)).toEqual(fields);
  });

  it("has no owner where nobody wrote it down", () => {
    expect(ownerOf(live, ["spec", "nodeName"])).toBeUndefined();
    expect(ownerOf(live, ["spec", "labels", "inner"])).toBe("chart");
  });
});
