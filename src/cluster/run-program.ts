import { StatusError } from "../api/status.ts";
import { CodedError } from "../kit/errors.ts";
import type { LogFields, LogLevel } from "../kit/log.ts";
import type { Program, ProgramContext } from "./program.ts";

/** What a process exits with that was asked to stop and did; and one that failed without a code of its own. */
const STOPPED = 0;
const FAILED = 1;

/** Runs a program to its end. The last word in its log is why it ended; the answer is what its process exits with. */
export async function runProgram(program: Program, world: ProgramContext): Promise<number> {
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
    const { fields, exitCode } = finalOutput(error);
    log.error(fields, error instanceof Error ? error.message : String(error));
    return exitCode;
  }
}

/** Programs that drop by themselves what is less serious than their configuration asks for, which may change while they run. */
const CHOOSES_LEVEL: readonly string[] = ["node"];

/** What a program's log is opened with. */
export function openLevelOf(program: string, env: Readonly<Record<string, string | undefined>>): LogLevel {
  return CHOOSES_LEVEL.includes(program) ? "debug" : logLevelOf(env);
}

/** `LOG_LEVEL` of the container, `info` where it says nothing we know. */
export function logLevelOf(env: Readonly<Record<string, string | undefined>>): LogLevel {
  const asked = (env["LOG_LEVEL"] ?? "").toLowerCase();
  return asked === "debug" || asked === "warn" || asked === "error" ? asked : "info";
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.name === "AbortError");
}

/** A failure with a code is explained by its sentence and its fix; only one we did not foresee needs its stack. */
function finalOutput(error: unknown): { fields: LogFields; exitCode: number } {
  if (error instanceof CodedError) {
    const { code, fix, cause } = error;
    const because = cause instanceof Error ? { cause: cause.message } : {};
    return { fields: { code, ...(fix && { fix }), ...because }, exitCode: error.exitCode || FAILED };
  }
  if (error instanceof StatusError) {
    return { fields: { code: error.code, reason: error.reason }, exitCode: FAILED };
  }
  return { fields: { code: "INTERNAL", error }, exitCode: FAILED };
}
