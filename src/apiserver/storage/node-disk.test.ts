import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Disk } from "./disk.ts";
import { FakeDisk } from "./fake-disk.ts";
import { openNodeDisk } from "./node-disk.ts";
import { openStore } from "./store.ts";

let base: string;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "store-"));
});
afterEach(() => rm(base, { recursive: true, force: true }));

const disks: [string, () => Promise<Disk>][] = [
  ["a directory", () => openNodeDisk(join(base, "disk"))],
  ["the fake", async () => new FakeDisk()],
];

describe.each(disks)("a disk: %s", (_name, open) => {
  it("makes, reads, renames, cuts and removes files", async () => {
    const disk = await open();
    const file = await disk.create("one");
    await file.append(Buffer.from("hello "));
    await file.append(Buffer.from("world"));
    await file.sync();
    await file.close();
    expect((await disk.read("one")).toString()).toBe("hello world");
    await disk.truncate("one", 5);
    await disk.rename("one", "two");
    await disk.syncDirectory();
    expect((await disk.read("two")).toString()).toBe("hello");
    expect(await disk.list()).toContain("two");
    await expect(disk.create("two")).rejects.toMatchObject({ code: "EEXIST" });
    await disk.remove("two");
    expect(await disk.list()).not.toContain("two");
    await disk.close();
  });
});

describe("a data directory", () => {
  it("is made when it does not exist, for its owner only, and keeps objects from one run to the next", async () => {
    const dataDir = join(base, "a", "b");
    const store = await openStore({ dataDir });
    const { revision } = store.put("/x", { apiVersion: "v1", kind: "X", metadata: { name: "x" } }, "absent");
    await store.durable(revision);
    await store.close();
    const again = await openStore({ dataDir });
    expect(again.get("/x", "", "x")?.revision).toBe(revision);
    await again.close();
    expect(await readdir(dataDir)).not.toContain("lock");
  });

  it("that is a file is refused", async () => {
    const file = join(base, "file");
    await writeFile(file, "");
    for (const dataDir of [file, join(file, "below")]) {
      await expect(openStore({ dataDir })).rejects.toMatchObject({
        code: "STORE_NOT_A_DIRECTORY",
        message: `the data directory ${dataDir} is not a directory`,
      });
    }
  });

  it("that holds files of something else is refused, and none of ours is put there", async () => {
    const dataDir = join(base, "home");
    await mkdir(dataDir);
    await writeFile(join(dataDir, "thesis.tex"), "");
    await expect(openStore({ dataDir })).rejects.toMatchObject({
      code: "STORE_FOREIGN",
      message: `the directory ${dataDir} is not a data directory: it has other files, such as thesis.tex`,
    });
    expect(await readdir(dataDir)).toEqual(["thesis.tex"]);
  });

  it("that was used before may have other files, too", async () => {
    const dataDir = join(base, "used");
    await (await openStore({ dataDir })).close();
    await writeFile(join(dataDir, "notes.txt"), "");
    await (await openStore({ dataDir })).close();
  });

  it("without permission is refused", async () => {
    await chmod(base, 0o500);
    await asNobody(() =>
      expect(openStore({ dataDir: base })).rejects.toMatchObject({
        code: "STORE_NO_PERMISSION",
        message: `no permission to read and write the data directory ${base}`,
      }),
    );
    await chmod(base, 0o700);
  });
});

/** Root may write anywhere, so as root the story is told as somebody else. */
async function asNobody(story: () => Promise<void>): Promise<void> {
  if (process.getuid?.() !== 0) return story();
  process.seteuid?.(65534);
  try {
    await story();
  } finally {
    process.seteuid?.(0);
  }
}
