import { type ChildProcessByStdio, type SpawnOptions, spawn } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Readable } from "node:stream";

export interface Ran {
  status: number | null;
  out: string;
  err: string;
}

/** The tool as a person runs it, with a state directory of its own. */
export interface Vendorctl {
  home: string;
  run(...args: string[]): Promise<Ran>;
  /** Takes every cluster down and removes what was made. */
  clear(): Promise<void>;
}

/** Root may do anything, so a story about permissions runs as somebody else. */
const UNPRIVILEGED = 65534;

export function vendorctl({ asNobody = false } = {}): Vendorctl {
  const home = mkdtempSync(join(tmpdir(), "vendorctl-"));
  const user = asNobody && process.getuid?.() === 0 ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {};
  if (user.uid !== undefined) chownSync(home, user.uid, user.gid);
  const env = { PATH: process.env["PATH"] ?? "", HOME: home, VENDORCTL_HOME: home };
  const run = (...args: string[]) =>
    runProcess(process.execPath, [resolve("bin/vendorctl"), ...args], { env, ...user });
  return {
    home,
    run,
    clear: async () => {
      const { out } = await run("cluster", "list", "-o", "json");
      for (const { name } of JSON.parse(out || "[]") as { name: string }[])
        await run("cluster", "down", "--name", name);
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function runProcess(command: string, args: readonly string[], options: SpawnOptions): Promise<Ran> {
  return new Promise((done, fail) => {
    const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] }) as ChildProcessByStdio<
      null,
      Readable,
      Readable
    >;
    const said = { out: "", err: "" };
    child.stdout.setEncoding("utf8").on("data", (text) => {
      said.out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text) => {
      said.err += text;
    });
    child.on("error", fail);
    child.on("close", (status) => done({ status, ...said }));
  });
}
