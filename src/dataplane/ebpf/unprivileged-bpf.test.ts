import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { disableUnprivilegedBpf } from "./unprivileged-bpf.ts";

/** A file in place of the kernel's: the real one cannot be set back. */
describe("bpfDisableUnprivileged", () => {
  let directory: string;
  let setting: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "vt-unprivileged-"));
    setting = join(directory, "unprivileged_bpf_disabled");
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it.each([
    ["0\n", "1"],
    ["1\n", "1\n"],
    ["2\n", "2\n"],
  ])("makes of %j %j: what is set already stays as it is", (before, after) => {
    writeFileSync(setting, before);
    disableUnprivilegedBpf(setting);
    expect(readFileSync(setting, "utf8")).toBe(after);
  });

  it("makes nothing where the kernel has no such setting", () => {
    const absent = join(directory, "absent");
    disableUnprivilegedBpf(absent);
    expect(existsSync(absent)).toBe(false);
  });
});
