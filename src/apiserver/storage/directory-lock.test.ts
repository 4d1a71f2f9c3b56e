import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { lockDirectory } from "./directory-lock.ts";

let path: string;
beforeEach(async () => {
  path = await mkdtemp(join(tmpdir(), "lock-"));
});
afterEach(() => rm(path, { recursive: true, force: true }));

const locked = (pid: number) => ({
  code: "STORE_LOCKED",
  message: `the data directory ${path} is in use by process ${pid}`,
});

async function leaveLock(owner: string): Promise<void> {
  await writeFile(join(path, "lock"), `${owner}\n`);
}

async function myself(): Promise<{ started: string; boot: string }> {
  const unlock = await lockDirectory(path);
  const [, started, boot] = (await readFile(join(path, "lock"), "utf8")).trim().split(" ");
  await unlock();
  return { started: started!, boot: boot! };
}

it("lets one process in, and the next when that is done", async () => {
  const unlock = await lockDirectory(path);
  await expect(lockDirectory(path)).rejects.toMatchObject(locked(process.pid));
  await unlock();
  await (await lockDirectory(path))();
  expect(await readdir(path)).toEqual([]);
});

it("names the process that has it", async () => {
  const child = spawn("sleep", ["60"]);
  await once(child, "spawn");
  // Its start is not known here, so in doubt it is the owner.
  await leaveLock(`${child.pid} unknown unknown`);
  await expect(lockDirectory(path)).rejects.toMatchObject(locked(child.pid!));
  child.kill("SIGKILL");
  await once(child, "exit");
  await (await lockDirectory(path))();
});

it("sees through a lock whose process is gone, whose number is another's now, or that a power loss emptied", async () => {
  const { started, boot } = await myself();
  const gone = spawnSync("true").pid;
  for (const stale of [
    `${gone} ${started} ${boot}`,
    `${process.pid} 1 ${boot}`,
    `${process.pid} ${started} another-boot`,
    "",
  ]) {
    await leaveLock(stale);
    const unlock = await lockDirectory(path);
    await expect(lockDirectory(path)).rejects.toMatchObject(locked(process.pid));
    await unlock();
    expect(await readdir(path)).toEqual([]);
  }
});

it("lets only one of many in who find the same stale lock, also when one died while taking it", async () => {
  const gone = spawnSync("true").pid;
  for (let round = 0; round < 20; round++) {
    await leaveLock(`${gone} 1 b`);
    if (round % 2 === 1) await writeFile(join(path, `lock.after-${gone}-1-b`), `${gone} 2 b\n`);
    const tries = await Promise.allSettled(Array.from({ length: 8 }, () => lockDirectory(path)));
    const winners = tries.filter((each) => each.status === "fulfilled");
    expect(winners).toHaveLength(1);
    await winners[0]!.value();
  }
});

it("does not wait for a killed process that nobody has buried", async () => {
  // The shell starts a process, and turns into one that never asks how it ended.
  const parent = spawn("sh", ["-c", "sleep 60 & echo $!; exec sleep 60"]);
  const [printed] = await once(parent.stdout.setEncoding("utf8"), "data");
  const pid = Number.parseInt(printed, 10);
  await leaveLock(`${pid} unknown unknown`);
  await expect(lockDirectory(path)).rejects.toMatchObject(locked(pid));
  process.kill(pid, "SIGKILL");
  await vi.waitFor(async () => (await lockDirectory(path))());
  parent.kill("SIGKILL");
});
