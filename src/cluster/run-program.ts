import { StatusError } from "../api/status.ts";
import { CodedError } from "../kit/errors.ts";
import type { LogLevel } from "../kit/log.ts";
import type { Program, ProgramWorld } from "./program.ts";

/** What a process exits with that was asked to stop and did; and one that failed without a code of its own. */
const STOPPED = 0;
const FAILED = 1;

/** Runs a program to its end. The last word in its log is why it ended; the answer is what its process exits with. */
export async function runProgram(program: Program, world: ProgramWorld): Promise<number> {
  const { log, signal } = world;
  try {
    await program(world);
    log.info({}, signal.aborted ? "stopped, as asked" : "done");
    return STOPPED;
  } catch (error) {
    if (signal.aborted && isAbort(error, signal)) {
      log.info({}, "stopped, as asked");
      return STOPPED;
    }
    const { code, fix, exitCode } = codedParts(error);
    log.error({ code, ...(fix && { fix }), error }, error instanceof Error ? error.message : String(error));
    return exitCode;
  }
}

/** `LOG_LEVEL` of the container, `info` where it says nothing we know. */
export function logLevelOf(env: Readonly<Record<string, string | undefined>>): LogLevel {
  const asked = (env["LOG_LEVEL"] ?? "").toLowerCase();
  return asked === "debug" || asked === "warn" || asked === "error" ? asked : "info";
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.name === "AbortError");
}

function codedParts(error: unknown): { code: string; fix?: string; exitCode: number } {
  if (error instanceof CodedError) return { code: error.code, fix: error.fix, exitCode: error.exitCode || FAILED };
  if (error instanceof StatusError) return { code: `API_${error.reason.toUpperCase()}`, exitCode: FAILED };
  return { code: "INTERNAL", exitCode: FAILED };
}
