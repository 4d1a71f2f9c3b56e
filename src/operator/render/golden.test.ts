import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import type { KubeObject } from "../../api/object.ts";
import type { Component } from "./inputs.ts";
import { renderComponent } from "./render-component.ts";
import { COMPONENTS, inputsFor, KINDS } from "./testing-inputs.fixture.ts";

/**
 * What is rendered, as files to read. `COMPONENT.generic.standard.yaml` has every object; the others only those that a kind of cluster or
 * the eBPF data plane makes different. After a change that is meant: UPDATE_GOLDEN=1 npm test -- src/operator/render, and read the diff.
 */
const DIR = new URL("testdata/", import.meta.url);
const UPDATE = process.env["UPDATE_GOLDEN"] === "1";

const CASES = COMPONENTS.flatMap((component) =>
  KINDS.flatMap((kind) => [false, true].map((bpf) => ({ component, kind, bpf, file: fileOf(component, kind, bpf) }))),
);

function fileOf(component: Component, kind: string, bpf: boolean): string {
  return `${component}.${kind}.${bpf ? "bpf" : "standard"}.yaml`;
}

/** The objects that are not the same as on an ordinary cluster. */
function different(objects: readonly KubeObject[], from: readonly KubeObject[]): KubeObject[] {
  return objects.filter((object) => !from.some((other) => isDeepStrictEqual(other, object)));
}

function print(objects: readonly KubeObject[]): string {
  return objects.map((object) => `---\n${stringify(object, { aliasDuplicateObjects: false, lineWidth: 0 })}`).join("");
}

describe("what is rendered is what the golden files say", () => {
  it.each(CASES)("$component on $kind, eBPF $bpf", ({ component, kind, bpf, file }) => {
    const objects = renderComponent(component, inputsFor({ kind, bpf }));
    const ordinary = kind === "generic" && !bpf ? [] : renderComponent(component, inputsFor());
    const text = print(different(objects, ordinary));
    const path = new URL(file, DIR);
    if (UPDATE && text !== "") {
      mkdirSync(DIR, { recursive: true });
      writeFileSync(path, text);
    }
    expect(text).toBe(existsSync(path) ? readFileSync(path, "utf8") : "");
  });

  it("has no file that nothing is compared with", () => {
    const known = new Set(CASES.map(({ file }) => file));
    expect(readdirSync(DIR).filter((file) => !known.has(file))).toEqual([]);
  });
});
