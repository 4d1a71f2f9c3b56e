import { describe, expect, it } from "vitest";
import { compileJsonPath } from "./json-path.ts";

const deployment = {
  metadata: {
    name: "web",
    annotations: { "foo.bar/baz": "yes", "it's": "quoted" },
  },
  spec: { replicas: 3, ports: [{ port: 80 }, { port: 443, name: "https" }], nothing: null },
  status: {
    conditions: [
      { type: "Ready", status: "True", since: 5 },
      { type: "Available", status: "False", since: 9 },
    ],
  },
};

describe("a JSON path", () => {
  it.each([
    [".spec.replicas", [3]],
    ["{.spec.replicas}", [3]],
    ["$.spec.replicas", [3]],
    ["spec.replicas", [3]],
    [".", [deployment]],
    [".spec.missing.deeper", []],
    [".spec.replicas.deeper", []],
    [".spec.nothing", [null]],
    [".spec.toString", []],
    [String.raw`.metadata.annotations.foo\.bar/baz`, ["yes"]],
    [".metadata.annotations['foo.bar/baz']", ["yes"]],
    ['.metadata.annotations["foo.bar/baz"]', ["yes"]],
    [String.raw`.metadata.annotations['it\'s']`, ["quoted"]],
    [".spec.ports[0].port", [80]],
    [".spec.ports[-1].port", [443]],
    [".spec.ports[2].port", []],
    [".spec.ports[*].port", [80, 443]],
    [".metadata.annotations.*", ["yes", "quoted"]],
    ['.status.conditions[?(@.type=="Ready")].status', ["True"]],
    [".status.conditions[?(@.type=='Missing')].status", []],
    ['.status.conditions[?( @.type != "Ready" )].status', ["False"]],
    [".status.conditions[?(@.since>=9)].type", ["Available"]],
    [".status.conditions[?(@.since<9)].type", ["Ready"]],
    [".spec.ports[?(@.name)].port", [443]],
    ['.status.conditions[?(@["type"]=="a)]")].status', []],
  ])("%s finds %j", (path, expected) => {
    expect(compileJsonPath(path)(deployment)).toEqual(expected);
  });

  it.each([".spec...replicas", ".spec[", ".spec.ports[x]", ".a]", '.c[?(@.t=~"x")]', ".c[?(type==1)]", ".spec."])(
    "refuses %s, and says where it stops making sense",
    (path) => {
      expect(() => compileJsonPath(path)).toThrow(expect.objectContaining({ code: "JSON_PATH_INVALID" }));
    },
  );

  it("finds nothing in what is not an object", () => {
    expect(compileJsonPath(".a[0]")(undefined)).toEqual([]);
    expect(compileJsonPath(".a[*].b")("text")).toEqual([]);
  });
});
