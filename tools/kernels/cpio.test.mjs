import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { cpio } from "./cpio.mjs";

const archive = Buffer.concat(
  cpio([
    { path: "dev/console", kind: "device", device: [5, 1] },
    { path: "app/a/text", kind: "file", bytes: Buffer.from("hello") },
  ]),
);

describe("the first file system of a kernel", () => {
  it("has the folders of its files, the files, and an end", () => {
    const names = [...archive.toString("latin1").matchAll(/070701[0-9a-f]{104}([^\0]+)/g)].map(([, name]) => name);
    expect(names).toEqual(["app", "app/a", "dev", "dev/console", "app/a/text", "TRAILER!!!"]);
    expect(archive.length % 4).toBe(0);
  });

  it("is read by cpio itself", (context) => {
    const listed = spawnSync("cpio", ["-tv"], { input: archive, encoding: "utf8" });
    if (listed.error) context.skip("needs cpio");
    expect(listed.stdout).toMatch(/^crw-------.* 5,\s+1 .*dev\/console$/m);
    expect(listed.stdout).toMatch(/^-rwxr-xr-x.* 5 .*app\/a\/text$/m);
  });
});
