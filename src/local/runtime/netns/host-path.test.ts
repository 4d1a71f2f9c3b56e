import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hostPathFailure } from "./host-path.ts";

describe("a hostPath volume", () => {
  const root = mkdtempSync(join(tmpdir(), "host-path-"));
  const socket = createServer();
  beforeAll(async () => {
    mkdirSync(join(root, "directory"));
    writeFileSync(join(root, "file"), "kept");
    await new Promise<void>((resolve) => socket.listen(join(root, "socket"), resolve));
  });
  afterAll(() => {
    socket.close();
    rmSync(root, { recursive: true });
  });

  const failure = (name: string, type: string) => hostPathFailure(join(root, name), `/${name}`, type);

  it.each([
    ["directory", "", undefined],
    ["file", "", undefined],
    ["directory", "Directory", undefined],
    ["lib/modules", "Directory", "/lib/modules is not a directory"],
    ["file", "Directory", "/file is not a directory"],
    ["file", "DirectoryOrCreate", expect.stringContaining("/file is not a directory")],
    ["file", "File", undefined],
    ["absent", "File", "/absent is not a file"],
    ["directory", "FileOrCreate", "/directory is not a file"],
    ["no/parent", "FileOrCreate", expect.stringContaining("no such file or directory")],
    ["socket", "Socket", undefined],
    ["file", "Socket", "/file is not a socket file"],
    ["file", "CharDevice", "/file is not a character device"],
    ["file", "BlockDevice", "/file is not a block device"],
    ["file", "Folder", "Folder is an invalid volume type"],
  ])("%s as %j", (name, type, why) => {
    const expected = typeof why === "string" ? `hostPath type check failed: ${why}` : why;
    expect(failure(name, type)).toEqual(expected);
  });

  it("is created where its type lets the kubelet create it, and left as it is where it exists", () => {
    for (const name of ["made/by/kubelet", "made/by/runtime"]) {
      expect(failure(name, name.endsWith("kubelet") ? "DirectoryOrCreate" : "")).toBeUndefined();
      expect(statSync(join(root, name)).isDirectory()).toBe(true);
    }
    expect(failure("made/lock", "FileOrCreate")).toBeUndefined();
    expect(statSync(join(root, "made/lock")).size).toBe(0);
    expect(failure("file", "FileOrCreate")).toBeUndefined();
    expect(statSync(join(root, "file")).size).toBe(4);
    expect(existsSync(join(root, "lib"))).toBe(false);
  });
});
