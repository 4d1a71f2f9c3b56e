import { describe, expect, it } from "vitest";
import { parsePath, printPath } from "../field-path.ts";
import { editManifest, manifestObjects } from "./edit-manifest.ts";

const FILE = `# A file somebody wrote.
apiVersion: a/v1
kind: Installation
metadata:
  name: default # the only one
spec:
  network:
    # Keep this.
    mode: Disabled
  # pools:
  #   - cidr: 10.0.0.0/8
---
# The second.
apiVersion: a/v1
kind: APIServer
metadata:
  name: default
spec:
`;

const edit = (path: string, value: unknown, kind = "Installation") => ({ kind, path: parsePath(path) ?? [], value });

describe("editing a manifest", () => {
  it("sets fields and keeps every comment and every other line", () => {
    const edited = editManifest("f", FILE, [
      edit("spec.network.dataplane", "BPF"),
      edit("spec.network.mode", "Enabled"),
    ]);
    expect(edited).toBe(FILE.replace("mode: Disabled\n", "mode: Enabled\n    dataplane: BPF\n"));
  });

  it("makes the sections and lists a path needs, also where there was only an empty key", () => {
    const edited = editManifest("f", FILE, [
      edit("spec.network.pools[0].cidr", "10.1.0.0/16"),
      edit("spec.a.b", 1, "APIServer"),
    ]);
    const [installation, apiServer] = manifestObjects("f", edited);
    expect(installation?.["spec"]).toEqual({ network: { mode: "Disabled", pools: [{ cidr: "10.1.0.0/16" }] } });
    expect(apiServer?.["spec"]).toEqual({ a: { b: 1 } });
  });

  it("adds objects at the end, but none that is there", () => {
    const more = { apiVersion: "a/v1", kind: "FlowLogs", metadata: { name: "default" }, spec: {} };
    const once = editManifest("f", FILE, [], [more]);
    expect(manifestObjects("f", once).map(({ kind }) => kind)).toEqual(["Installation", "APIServer", "FlowLogs"]);
    expect(editManifest("f", once, [], [more])).toBe(once);
  });

  it("done twice, it is as done once", () => {
    const edits = [edit("spec.network.dataplane", "BPF")];
    const once = editManifest("f", FILE, edits);
    expect(editManifest("f", once, edits)).toBe(once);
  });

  it.each<[string, () => unknown, string]>([
    ["no YAML", () => editManifest("f", "a: [", []), "MANIFEST_NOT_YAML"],
    ["nothing", () => editManifest("f", "# nothing\n", []), "MANIFEST_NOT_OBJECTS"],
    ["no objects", () => editManifest("f", "a: 1\n", []), "MANIFEST_NOT_OBJECTS"],
    ["no such kind", () => editManifest("f", FILE, [edit("spec.a", 1, "FlowUI")]), "MANIFEST_WITHOUT_KIND"],
    [
      "a field below a text",
      () => editManifest("f", FILE, [edit("spec.network.mode.x", 1)]),
      "MANIFEST_FIELD_IMPOSSIBLE",
    ],
  ])("refuses %s", (_what, make, code) => {
    expect(make).toThrow(expect.objectContaining({ code }));
  });
});

describe("a field's path", () => {
  it.each([
    ["spec.a", ["spec", "a"]],
    ["spec.pools[0].cidr", ["spec", "pools", 0, "cidr"]],
    ["spec.a[1][2]", ["spec", "a", 1, 2]],
  ])("%s", (text, path) => {
    expect(parsePath(text)).toEqual(path);
    expect(printPath(path)).toBe(text);
  });

  it.each(["", ".spec", "spec.", "spec..a", "spec[x]", "spec a", "0", "spec[9999]"])("not %o", (text) => {
    expect(parsePath(text)).toBeUndefined();
  });
});
