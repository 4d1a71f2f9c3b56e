import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export interface Ended {
  status: number | null;
  signal: NodeJS.Signals | null;
  out: string;
  err: string;
}

/** A vendorctl under way, in a process of its own. */
export interface ToolProcess {
  ended: Promise<Ended>;
  /** Resolves when it has said this, on either output; fails when it ends first. */
  said(pattern: RegExp): Promise<void>;
  /** Ctrl-C. */
  interrupt(): void;
  /** Without a last word. Resolves when the process is gone. */
  kill(): Promise<void>;
}

export interface Tool {
  readonly home: string;
  start(...args: string[]): ToolProcess;
  run(...args: string[]): Promise<Ended>;
  close(): void;
}

export interface ToolOptions {
  /** A folder whose programs come before those of this machine. */
  programs?: string | undefined;
  /** Default: this checkout's. */
  executable?: string;
  /** The state directory of another tool, shared with it. Default: one of its own. */
  home?: string;
}

/** The real executable with a kubeconfig and a state directory, and the programs of this machine. */
export function openTool(kubeconfig: string, options: ToolOptions = {}): Tool {
  const { programs = "/nowhere", executable = resolve("bin/vendorctl") } = options;
  const home = options.home ?? mkdtempSync(join(tmpdir(), "kill-sweep-"));
  const file = join(home, "kubeconfig");
  writeFileSync(file, kubeconfig);
  const env = { PATH: `${programs}:${process.env["PATH"] ?? ""}`, HOME: home, VENDORCTL_HOME: home, KUBECONFIG: file };
  const running = new Set<ChildProcess>();
  const start: Tool["start"] = (...args) => {
    const child = spawn(process.execPath, [executable, ...args], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    running.add(child);
    const said = { out: "", err: "" };
    child.stdout.setEncoding("utf8").on("data", (text) => {
      said.out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text) => {
      said.err += text;
    });
    const ended = new Promise<Ended>((done, fail) => {
      child.on("error", fail);
      child.on("close", (status, signal) => {
        running.delete(child);
        done({ status, signal, ...said });
      });
    });
    return {
      ended,
      said: (pattern) =>
        new Promise((resolve, reject) => {
          const look = () => {
            if (pattern.test(said.out + said.err)) resolve();
          };
          child.stdout.on("data", look);
          child.stderr.on("data", look);
          child.on("close", () => reject(new Error(`never said ${pattern}: ${said.out}${said.err}`)));
          look();
        }),
      interrupt: () => void child.kill("SIGINT"),
      async kill() {
        child.kill("SIGKILL");
        await ended;
      },
    };
  };
  return {
    home,
    start,
    run: (...args) => start(...args).ended,
    close() {
      for (const child of running) child.kill("SIGKILL");
      rmSync(home, { recursive: true, force: true });
    },
  };
}
