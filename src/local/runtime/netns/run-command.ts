import { spawn } from "node:child_process";

export interface Ran {
  /** -1: it could not be started, or a signal ended it. */
  code: number;
  out: string;
  err: string;
}

export interface RunOptions {
  input?: string;
  env?: Record<string, string>;
  timeoutMs?: number;
}

/** The search path of the system's tools, independent of our parent. */
export const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Runs a program to its end. Never throws: what went wrong is in the answer. */
export function runCommand([command = "", ...args]: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { input = "", env = {}, timeoutMs = 120_000 } = options;
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      env: { PATH: SYSTEM_PATH, ...env },
      stdio: "pipe",
      timeout: timeoutMs,
      killSignal: "SIGKILL",
    });
    let [out, err] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    child.on("error", (error) => resolve({ code: -1, out, err: err || error.message }));
    child.on("close", (code) => resolve({ code: code ?? -1, out, err }));
    // It may end without having read what it was given.
    child.stdin.on("error", () => undefined).end(input);
  });
}
