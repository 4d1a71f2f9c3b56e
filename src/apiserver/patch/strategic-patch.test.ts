import { describe, expect, it } from "vitest";
import type { Definitions } from "../../api/schema/schema.ts";
import { applyStrategicPatch, patchTypeOf } from "./strategic-patch.ts";

/** As much of a pod as the stories below need, described the way Kubernetes describes its own types. */
const definitions: Definitions = {
  Pod: {
    type: "object",
    properties: { metadata: { $ref: "#/definitions/Meta" }, spec: { $ref: "#/definitions/PodSpec" } },
  },
  Meta: {
    type: "object",
    properties: {
      labels: { type: "object", additionalProperties: { type: "string" } },
      finalizers: { type: "array", items: { type: "string" }, "x-kubernetes-patch-strategy": "merge" },
    },
  },
  PodSpec: {
    type: "object",
    properties: {
      containers: {
        type: "array",
        items: { $ref: "#/definitions/Container" },
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "name",
      },
      volumes: {
        type: "array",
        items: { type: "object", properties: { name: { type: "string" }, emptyDir: { type: "object" } } },
        "x-kubernetes-patch-strategy": "merge,retainKeys",
        "x-kubernetes-patch-merge-key": "name",
      },
      tolerations: { type: "array", items: { type: "object" } },
    },
  },
  Container: {
    type: "object",
    properties: {
      name: { type: "string" },
      image: { type: "string" },
      args: { type: "array", items: { type: "string" } },
      env: {
        type: "array",
        items: { type: "object", properties: { name: { type: "string" }, value: { type: "string" } } },
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "name",
      },
    },
  },
  Revision: {
    type: "object",
    properties: { data: { type: "object", "x-kubernetes-patch-strategy": "replace" } },
  },
};
const pod = patchTypeOf(definitions["Pod"]!, definitions);
const spec = (document: unknown, patch: unknown) =>
  (applyStrategicPatch({ spec: document }, { spec: patch }, pod) as { spec: unknown }).spec;

const web = { name: "web", image: "web:1", args: ["-v"], env: [{ name: "A", value: "1" }] };
const proxy = { name: "proxy", image: "proxy:1" };

describe("a strategic merge patch", () => {
  it("changes one container and one variable by name, and leaves the rest of both lists", () => {
    const patch = { containers: [{ name: "web", args: ["-q"], env: [{ name: "B", value: "2" }] }] };
    expect(spec({ containers: [proxy, web] }, patch)).toEqual({
      containers: [
        proxy,
        {
          name: "web",
          image: "web:1",
          args: ["-q"],
          env: [
            { name: "B", value: "2" },
            { name: "A", value: "1" },
          ],
        },
      ],
    });
  });

  it("replaces a list whose type has no merge key", () => {
    expect(spec({ tolerations: [{ key: "a" }] }, { tolerations: [{ key: "b" }] })).toEqual({
      tolerations: [{ key: "b" }],
    });
  });

  it("deletes an item with $patch: delete, and puts items in the order $setElementOrder asks for", () => {
    const patch = {
      "$setElementOrder/containers": [{ name: "log" }, { name: "web" }],
      containers: [
        { name: "log", image: "log:1" },
        { name: "proxy", $patch: "delete" },
      ],
    };
    expect(spec({ containers: [proxy, web] }, patch)).toEqual({ containers: [{ name: "log", image: "log:1" }, web] });
  });

  it("replaces a whole list with $patch: replace among its items", () => {
    const patch = { containers: [{ $patch: "replace" }, { name: "only" }] };
    expect(spec({ containers: [proxy, web] }, patch)).toEqual({ containers: [{ name: "only" }] });
    expect(spec({}, patch)).toEqual({ containers: [{ name: "only" }] });
  });

  it("adds to and deletes from a list of words; what is new and has no place comes first, as in Kubernetes", () => {
    const before = { metadata: { finalizers: ["a", "b"] } };
    const patch = { metadata: { finalizers: ["c"], "$deleteFromPrimitiveList/finalizers": ["a"] } };
    expect(applyStrategicPatch(before, patch, pod)).toEqual({ metadata: { finalizers: ["c", "b"] } });
  });

  it("switches a volume from one source to another with $retainKeys", () => {
    const before = { volumes: [{ name: "data", emptyDir: {} }] };
    const patch = { volumes: [{ name: "data", hostPath: { path: "/d" }, $retainKeys: ["name", "hostPath"] }] };
    expect(spec(before, patch)).toEqual({ volumes: [{ name: "data", hostPath: { path: "/d" } }] });
  });

  it("leaves no directive behind where there was nothing to merge with", () => {
    const patch = {
      containers: [{ name: "web", env: [{ name: "A", $patch: "delete" }], image: null }],
      "$setElementOrder/containers": [{ name: "web" }],
      volumes: [{ name: "d", $retainKeys: ["name"] }],
    };
    expect(spec({}, patch)).toEqual({ containers: [{ name: "web", env: [] }], volumes: [{ name: "d" }] });
  });

  it("takes what a replace field holds as it is, even a stored patch", () => {
    const revision = patchTypeOf(definitions["Revision"]!, definitions);
    const data = { spec: { template: { $patch: "replace", metadata: null } } };
    expect(applyStrategicPatch({}, { data }, revision)).toEqual({ data });
    expect(applyStrategicPatch({ data: { old: 1 } }, { data }, revision)).toEqual({ data });
  });

  it("merges a field the type does not know as JSON, for validation to judge", () => {
    const before = { spec: { novelty: { a: 1, list: [1] } } };
    expect(applyStrategicPatch(before, { spec: { novelty: { b: 2, list: [2] } } }, pod)).toEqual({
      spec: { novelty: { a: 1, b: 2, list: [2] } },
    });
  });

  it.each([
    [
      "an item without its merge key",
      { containers: [{ image: "x" }] },
      "does not contain declared merge key: name",
      422,
    ],
    ["a deletion without one", { containers: [{ $patch: "delete" }] }, "needs the merge key name", 422],
    ["words among objects", { containers: ["web"] }, "not identical", 422],
    ["an unknown directive", { $patch: "merge" }, 'unknown $patch type "merge"', 400],
    ["$retainKeys that is no list", { $retainKeys: "name" }, "must be a list", 400],
    ["a key $retainKeys does not list", { $retainKeys: ["volumes"], containers: [] }, "does not list", 400],
    ["a directive without its field", { $setElementOrder: [] }, "$setElementOrder/<field>", 400],
    ["an order that is no list", { "$setElementOrder/containers": 1 }, "must be a list", 400],
  ])("refuses %s", (_what, patch, message, code) => {
    expect(() => spec({ containers: [web] }, patch)).toThrow(
      expect.objectContaining({ kind: "invalid", code, message: expect.stringContaining(message) }),
    );
  });

  it("refuses anything but an object", () => {
    expect(() => applyStrategicPatch({}, [], pod)).toThrow("is an object");
    expect(() => applyStrategicPatch("text", {}, pod)).toThrow("an object, nothing else");
  });

  it("shares nothing with what it was given", () => {
    const before = { spec: { containers: [structuredClone(web)] } };
    const patch = { metadata: { labels: { a: "1" } } };
    const after = applyStrategicPatch(before, patch, pod) as typeof before & typeof patch;
    after.spec.containers[0]!.args.push("changed");
    after.metadata.labels.a = "changed";
    expect(before.spec.containers).toEqual([web]);
    expect(patch.metadata.labels.a).toBe("1");
  });
});
