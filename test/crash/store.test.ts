import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { killUntilWritten } from "./harness.ts";
import { storeTarget } from "./store-target.ts";

it("loses nothing acknowledged when the store is killed at random moments", async () => {
  const workDir = await mkdtemp(join(tmpdir(), "crash-"));
  const seed = Math.floor(Math.random() * 2 ** 31);
  const target = await storeTarget(workDir);
  const report = await killUntilWritten(target, { writes: 1000, kills: 20, writers: 8, seed }).catch((error: Error) => {
    error.message += ` (seed ${seed}, directory ${workDir})`;
    throw error;
  });
  expect(report.acknowledged).toBeGreaterThanOrEqual(1000);
  expect(report.kills).toBeGreaterThanOrEqual(20);
  console.log(
    `crash of the store: ${report.acknowledged} acknowledged writes, ${report.kills} kills, 0 lost, ${report.relists} relists`,
  );
  await rm(workDir, { recursive: true });
});
