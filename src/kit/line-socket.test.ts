import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { requestLine, serveLines } from "./line-socket.ts";

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lines-"));
  path = join(directory, "cni.sock");
});
afterEach(() => rmSync(directory, { recursive: true }));

it("a server that closes late leaves the socket of its successor alone", async () => {
  const old = await serveLines(path, async () => "old");
  const successor = await serveLines(path, async () => "new");
  expect(await requestLine(path, {}, 5_000)).toBe("new");
  await old.close();
  expect(await requestLine(path, {}, 5_000)).toBe("new");
  await successor.close();
  expect(existsSync(path)).toBe(false);
});

it("only the user it runs as may connect, and nothing is left but the socket", async () => {
  const server = await serveLines(path, async () => "answer");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory)).toEqual(["cni.sock"]);
  await server.close();
  expect(readdirSync(directory)).toEqual([]);
});
