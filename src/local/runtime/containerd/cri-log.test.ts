import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import type { LogOptions } from "../node-runtime.ts";
import { readCriLog } from "./cri-log.ts";

const home = mkdtempSync(join(tmpdir(), "cri-log-"));
afterAll(() => rmSync(home, { recursive: true }));
const path = join(home, "0.log");
const lines = ["T1 stdout F one", "T2 stdout P two, ", "T3 stdout F of two parts", "T4 stderr F "];
const put = () => writeFileSync(path, `${lines.join("\n")}\n`);

async function read(options: LogOptions = {}, from = path): Promise<string[]> {
  const all: string[] = [];
  for await (const line of readCriLog(from, options)) all.push(line);
  return all;
}

it("gives each line behind its time, and puts together what was split", async () => {
  put();
  expect(await read()).toEqual(["T1 one", "T2 two, of two parts", "T4 "]);
});

it("gives the last lines, whatever they were split into", async () => {
  put();
  expect(await read({ tailLines: 2 })).toEqual(["T2 two, of two parts", "T4 "]);
  expect(await read({ tailLines: 0 })).toEqual([]);
});

it("goes on while there is more to come", async () => {
  put();
  const stop = new AbortController();
  const seen: string[] = [];
  for await (const line of readCriLog(path, { follow: true, tailLines: 1, signal: stop.signal })) {
    seen.push(line);
    if (line === "T4 ") appendFileSync(path, "T5 stdout F more\n");
    else stop.abort();
  }
  expect(seen).toEqual(["T4 ", "T5 more"]);
});

it("has nothing of a container that never ran", async () => {
  expect(await read({ tailLines: 3 }, join(home, "none"))).toEqual([]);
});
