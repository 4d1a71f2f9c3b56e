import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { DOCUMENT, TEMPLATES } from "../../src/cli/testing/template-rows.ts";
import { findKubectls } from "../support/kubectl.ts";

it("templates of -o jsonpath print what kubectl prints", (context) => {
  const [kubectl] = findKubectls();
  if (kubectl === undefined) return context.skip("needs kubectl");
  const folder = mkdtempSync(join(tmpdir(), "jsonpath-"));
  try {
    const file = join(folder, "thing.json");
    writeFileSync(file, JSON.stringify(DOCUMENT));
    const all = TEMPLATES.map(([template]) => template).join('{"\\n--\\n"}');
    const args = ["patch", "--local", "--type", "merge", "-p", "{}", "-f", file, "-o", `jsonpath=${all}`];
    const { stdout, stderr } = spawnSync(kubectl.path, args, { encoding: "utf8" });
    expect([stdout.split("\n--\n"), stderr]).toEqual([TEMPLATES.map(([, printed]) => printed), ""]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
