import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import {
  accessSync,
  constants,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { patience } from "../../src/kit/testing/patience.ts";

/** Where `tools/newer-kubectl.mjs` keeps what it fetched: a folder per version, and a note on what it could not have. */
const CACHE = resolve("node_modules/.cache/kubectl");

export interface KubectlProgram {
  path: string;
  /** As in 1.32.3. */
  version: string;
}

/** Every kubectl this machine has: on the path, fetched, and those `KUBECTL` lists. One of each version, oldest first. */
export function findKubectls(): KubectlProgram[] {
  const named = (process.env["KUBECTL"] ?? "").split(delimiter).filter(Boolean);
  const onPath = (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, "kubectl"));
  const fetched = listed(CACHE).map((folder) => join(CACHE, folder, "kubectl"));
  const programs = new Map<string, KubectlProgram>();
  for (const path of new Set([...named, ...onPath, ...fetched].filter(isProgram).map((path) => realpathSync(path)))) {
    const version = versionOf(path);
    if (version !== undefined && !programs.has(version)) programs.set(version, { path, version });
  }
  return [...programs.values()].sort((a, b) => minorOf(a.version) - minorOf(b.version));
}

/** The releases whose newer kubectl could not be had, and why. */
export function missingKubectls(): { release: string; reason: string }[] {
  try {
    const missing = JSON.parse(readFileSync(join(CACHE, "missing.json"), "utf8")) as Record<string, string>;
    return Object.entries(missing).map(([release, reason]) => ({ release, reason }));
  } catch {
    return listed(CACHE).length > 0 ? [] : [{ release: "any", reason: "not fetched: node tools/newer-kubectl.mjs" }];
  }
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function versionOf(path: string): string | undefined {
  const { stdout } = spawnSync(path, ["version", "--client", "-o", "json"], { encoding: "utf8" });
  return /"gitVersion": "v(\d+\.\d+\.\d+)/.exec(stdout ?? "")?.[1];
}

export function minorOf(version: string): number {
  return Number(version.split(".")[1]);
}

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  stdin?: string;
  env?: Record<string, string>;
}

/** A kubectl process that goes on until it is stopped: a watch, a proxy. */
export interface Running {
  /** Resolves with the first line, of either output, from now or before, that the pattern finds; fails when the process ends first. */
  line(pattern: RegExp): Promise<string>;
  ended: Promise<Ran>;
  stop(): Promise<Ran>;
}

/** One kubectl with one cluster, and a home of its own so that what it caches is not anybody's. */
export interface Kubectl {
  readonly version: string;
  run(args: readonly string[], options?: RunOptions): Promise<Ran>;
  /** What it prints; fails with what it complains about unless it exits with 0. */
  ok(...args: string[]): Promise<string>;
  /** What it complains about; fails if it exits with 0. */
  refused(...args: string[]): Promise<string>;
  /** Asks again until it prints what is wanted. */
  until(args: readonly string[], wanted: RegExp): Promise<string>;
  start(...args: string[]): Running;
  /** The path of a file with this text. */
  file(name: string, text: string): string;
  close(): void;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const PATIENCE_MS = 20_000;

export function openKubectl(program: KubectlProgram, kubeconfig: string): Kubectl {
  const home = mkdtempSync(join(tmpdir(), "kubectl-story-"));
  const file = (name: string, text: string) => {
    const path = join(home, name);
    writeFileSync(path, text);
    return path;
  };
  const env = { PATH: process.env["PATH"], HOME: home, KUBECONFIG: file("kubeconfig", kubeconfig), TERM: "dumb" };
  const running = new Set<Child>();
  const begin = (args: readonly string[], options: RunOptions = {}) => {
    const child = spawn(program.path, args, { cwd: home, env: { ...env, ...options.env }, stdio: "pipe" });
    running.add(child);
    child.on("close", () => running.delete(child));
    child.stdin.on("error", () => {}).end(options.stdin ?? "");
    return child;
  };
  const run: Kubectl["run"] = (args, options) => finished(begin(args, options));
  return {
    version: program.version,
    run,
    async ok(...args) {
      const { code, stdout, stderr } = await run(args);
      if (code !== 0) throw new Error(`kubectl ${args.join(" ")} exited with ${code}: ${stderr}${stdout}`);
      return stdout;
    },
    async refused(...args) {
      const { code, stdout, stderr } = await run(args);
      if (code === 0) throw new Error(`kubectl ${args.join(" ")} was expected to fail, and printed: ${stdout}`);
      return stderr;
    },
    async until(args, wanted) {
      const began = Date.now();
      for (;;) {
        const { stdout, stderr } = await run(args);
        if (wanted.test(stdout + stderr)) return stdout;
        if (Date.now() - began > patience(PATIENCE_MS))
          throw new Error(`kubectl ${args.join(" ")} never printed ${wanted}, but ${stdout}${stderr}`);
      }
    },
    start: (...args) => follow(begin(args), args),
    file,
    close() {
      for (const child of running) child.kill();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function finished(child: Child): Promise<Ran> {
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? -1, stdout, stderr }));
  });
}

function follow(child: Child, args: readonly string[]): Running {
  const ended = finished(child);
  const lines: string[] = [];
  const readers = new Set<() => void>();
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on("line", (line) => {
      lines.push(line);
      for (const read of readers) read();
    });
  }
  return {
    ended,
    line: (pattern) =>
      new Promise((resolve, reject) => {
        const give = (settle: () => void) => {
          readers.delete(read);
          clearTimeout(late);
          settle();
        };
        const fail = (why: string) =>
          give(() => reject(new Error(`kubectl ${args.join(" ")} ${why} ${pattern}: ${lines.join("\n")}`)));
        const read = () => {
          const found = lines.find((line) => pattern.test(line));
          if (found !== undefined) give(() => resolve(found));
        };
        const late = setTimeout(() => fail("did not print"), patience(PATIENCE_MS));
        void ended.then(() => fail("ended without"));
        readers.add(read);
        read();
      }),
    stop: () => {
      child.kill();
      return ended;
    },
  };
}
