import { describe, expect, it } from "vitest";
import { ContainerLog } from "./container-log.ts";
import type { LogOptions } from "./node-runtime.ts";

async function read(log: ContainerLog, options: LogOptions = {}): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of log.read(options)) lines.push(line);
  return lines;
}

describe("the log of a container", () => {
  it("is what this run said; the run before is there for --previous", async () => {
    const log = new ContainerLog();
    for (const run of ["first", "second"]) {
      log.startRun();
      log.write(`${run}: hello`);
      log.write(`${run}: bye`);
    }
    expect(await read(log)).toEqual(["second: hello", "second: bye"]);
    expect(await read(log, { previous: true })).toEqual(["first: hello", "first: bye"]);
    expect(await read(log, { tailLines: 1 })).toEqual(["second: bye"]);
    expect(await read(log, { tailLines: 0 })).toEqual([]);
    expect(await read(log, { previous: true, tailLines: 1 })).toEqual(["first: bye"]);
  });

  it("goes on for whoever follows, over a restart, until the container is no more", async () => {
    const log = new ContainerLog();
    log.write("one");
    const following = read(log, { follow: true });
    await Promise.resolve();
    log.write("two");
    log.startRun();
    log.write("three");
    log.end();
    expect(await following).toEqual(["one", "two", "three"]);
  });

  it("keeps the newest lines of a talkative one, and no reader is told one twice", async () => {
    const log = new ContainerLog();
    const following = read(log, { follow: true });
    for (let line = 0; line < 12_000; line++) log.write(String(line));
    log.end();
    const kept = await read(log);
    expect(kept.length).toBeLessThanOrEqual(5_000);
    expect(kept.at(-1)).toBe("11999");
    const told = (await following).map(Number);
    expect(told.every((line, at) => at === 0 || line > told[at - 1]!)).toBe(true);
  });
});
