import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { CARRIED_VARIABLES, REMOVED_VARIABLES } from "../../../releases/not-carried/settings.ts";

const root = new URL("../../../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), "utf8");
const PROGRAMS = [
  "agent/config.ts",
  "cni/config.ts",
  "controllers/config.ts",
  "cluster/config.ts",
  "cluster/run-program.ts",
  "datastore/config.ts",
];

it("every variable that is called carried is read by a program, or set by a published file", () => {
  const files = readdirSync(new URL("manifests/", root)).filter((name) => name.endsWith(".yaml"));
  const texts = [...PROGRAMS.map((path) => read(`src/${path}`)), ...files.map((name) => read(`manifests/${name}`))];
  const named = new Set(texts.flatMap((text) => [...text.matchAll(/\b[A-Z][A-Z0-9_]+\b/g)].map(([name]) => name)));
  expect([...CARRIED_VARIABLES].filter((name) => !named.has(name))).toEqual([]);
});

it("no variable is both carried and removed", () => {
  expect(REMOVED_VARIABLES.flatMap(({ names }) => names).filter((name) => CARRIED_VARIABLES.has(name))).toEqual([]);
});
