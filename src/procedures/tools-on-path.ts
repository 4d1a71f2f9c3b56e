import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { errors } from "../releases/errors.ts";
import type { OtherTools, ToolResult } from "./other-tools.ts";

/** A chart tool that waits for a rollout takes minutes; none takes longer than this and still does something. */
const TIMEOUT_MS = 15 * 60_000;
/** The end of each output, which has the error. */
const MOST_OUTPUT = 1024 * 1024;

/** The programs of a search path. Nothing goes through a shell, so no argument can be more than an argument. */
export function toolsOnPath(folders: readonly string[], timeoutMs: number = TIMEOUT_MS): OtherTools {
  const find = async (program: string): Promise<string | undefined> => {
    if (program.includes("/")) return isAbsolute(program) && (await isProgram(program)) ? program : undefined;
    for (const folder of folders) {
      const path = join(folder, program);
      if (await isProgram(path)) return path;
    }
    return undefined;
  };
  return {
    find,
    async run(program, args, options = {}) {
      const path = await find(program);
      if (path === undefined) throw errors.TOOL_NOT_INSTALLED(program);
      return await runProgram({ program, path, args, timeoutMs, ...options });
    },
  };
}

interface Started {
  program: string;
  path: string;
  args: readonly string[];
  timeoutMs: number;
  input?: string;
  signal?: AbortSignal;
}

function runProgram({ program, path, args, timeoutMs, input, signal }: Started): Promise<ToolResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, {
      stdio: ["pipe", "pipe", "pipe"],
      timeout: timeoutMs,
      signal,
      killSignal: "SIGTERM",
    });
    const [stdout, stderr] = [tailOf(child.stdout), tailOf(child.stderr)];
    child.once("error", (error: NodeJS.ErrnoException) => {
      reject(
        error.name === "AbortError" ? error : errors.TOOL_NOT_STARTED(program, error.code ?? error.message).from(error),
      );
    });
    child.once("close", (exitCode) => {
      // Without an exit status it was ended by a signal; the only one we send is the timeout's.
      if (exitCode === null) return reject(errors.TOOL_TIMED_OUT(program, Math.round(timeoutMs / 1000)));
      resolve({ exitCode, stdout: stdout(), stderr: stderr() });
    });
    // A program that ends without reading its input is not our failure.
    child.stdin.on("error", () => {});
    child.stdin.end(input ?? "");
  });
}

function tailOf(stream: NodeJS.ReadableStream): () => string {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (part: string) => {
    text = (text + part).slice(-MOST_OUTPUT);
  });
  return () => text;
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
