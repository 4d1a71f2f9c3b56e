import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { recordDurations, secondsOf } from "./durations.mjs";

it("lists what takes a second or more, by name", () => {
  const folder = mkdtempSync(join(tmpdir(), "durations-"));
  try {
    const file = join(folder, "durations.json");
    const measured = [
      ["test/b.test.ts", 12.34],
      ["test/quick.test.ts", 0.4],
      ["test/a.test.ts", 1.2],
    ];
    recordDurations(new Map(measured), file);
    expect(readFileSync(file, "utf8")).toBe('{\n  "test/a.test.ts": 1,\n  "test/b.test.ts": 12\n}\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("a file that is not listed is taken for a quick one", () => {
  expect(secondsOf("test/not-there.test.ts")).toBeLessThan(1);
});
