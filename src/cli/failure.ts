import { StatusError } from "../api/status.ts";
import { CodedError } from "../kit/errors.ts";
import { errors } from "./errors.ts";
import { wrapped } from "./printer.ts";
import type { CliContext, GlobalFlags } from "./session.ts";

/** From this verbosity on, a failure shows its stack. */
const SHOW_STACK = 8;

/** Gives every failure its code, its sentence and its fix; the last stop of every error. */
export function asCoded(error: unknown): CodedError {
  if (error instanceof CodedError) return error;
  if (error instanceof StatusError) return fromStatus(error);
  if (error instanceof Error && error.name === "AbortError") return errors.INTERRUPTED().from(error);
  const message = error instanceof Error ? error.message : String(error);
  return errors.INTERNAL(firstLine(message)).from(error);
}

/** What the API server refused, in its own words: `pods "web" not found [API_NOT_FOUND]`. */
function fromStatus(error: StatusError): CodedError {
  const reason = error.reason || "Unknown";
  const code = `API_${reason.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase()}`;
  return new CodedError(code, firstLine(error.message), { fix: FIX_BY_REASON[reason], cause: error });
}

/** The reason an `API_…` code was made from. */
export function reasonOfApiCode(code: string): string | undefined {
  const words = /^API_([A-Z_]+)$/.exec(code)?.[1]?.split("_");
  return words?.map((word) => word.charAt(0) + word.slice(1).toLowerCase()).join("");
}

/** The fix, where it follows from the reason alone. */
export const FIX_BY_REASON: Record<string, string> = {
  Unauthorized: "check the credentials of the kubeconfig's context",
  Forbidden: "ask the cluster's owner for the right it names, or use another --context",
  Conflict: "run the command again; if the message names what is in the way, change that first",
};

type Shown = Pick<GlobalFlags, "output" | "v">;

export async function printFailure(world: CliContext, flags: Shown, error: CodedError): Promise<void> {
  world.err(
    flags.output === "json" ? failureJson(flags, error) : await failureText(world.config.columns, flags, error),
  );
}

/** At once and without a width: for a failure outside of any command, after which the process ends. */
export function printFailureNow(world: CliContext, error: CodedError): void {
  world.err(`error: ${error.message} [${error.code}]\n${error.fix ? `  fix: ${error.fix}\n` : ""}`);
}

function failureJson({ v }: Shown, error: CodedError): string {
  const { code, message, fix, exitCode } = error;
  const stack = v >= SHOW_STACK ? stackOf(error) : undefined;
  return `${JSON.stringify({ event: "error", code, message, fix, exitCode, stack })}\n`;
}

async function failureText(width: number, { v }: Shown, error: CodedError): Promise<string> {
  const lines = [
    ...(await wrapped(`${error.message} [${error.code}]`, { first: "error: ", width })),
    ...(error.fix ? await wrapped(error.fix, { first: "  fix: ", width }) : []),
    ...(v >= SHOW_STACK ? [stackOf(error)] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function stackOf(error: Error): string {
  const cause = error.cause instanceof Error ? `\ncaused by ${stackOf(error.cause)}` : "";
  return `${error.stack ?? error.message}${cause}`;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!.trim() || "no message";
}
