import { setMaxListeners } from "node:events";
import { basename } from "node:path";
import { readCliConfig } from "./cli/config.ts";
import { asCoded, printFailureNow } from "./cli/failure.ts";
import { guarded } from "./cli/printable.ts";
import type { CliContext } from "./cli/session.ts";
import { runVendorctl } from "./cli/vendorctl.ts";

const MOST_LISTENERS = 100;

/** The one executable: vendorctl for people, and under the name `vendor` the programs that run in a cluster. */
async function main(): Promise<void> {
  // Many concurrent requests listen to one signal; that many listeners are no leak.
  setMaxListeners(MOST_LISTENERS);
  const interrupt = new AbortController();
  stopOnSignals(interrupt);
  endQuietlyWithoutReader();
  const [, executable = "", ...args] = process.argv;
  const [program, ...rest] = args;
  if (basename(executable) !== "vendor") await runTool(args, interrupt.signal, runVendorctl);
  else if (program === undefined || HELP.has(program)) await showHelp(program);
  else if (program === "cni") await (await import("./cni/plugin-main.ts")).pluginMain();
  else if (program === "node" && rest.length > 0) {
    await runTool(rest, interrupt.signal, (await import("./cli/commands/node/vendor-node.ts")).runVendorNode);
  } else if (program === "probe") {
    await runTool(rest, interrupt.signal, (await import("./cli/commands/node/vendor-probe.ts")).runVendorProbe);
  } else await runContainer(args, interrupt.signal);
}

const HELP = new Set(["help", "-h", "--help"]);
/** As sysexits has it: what was asked for cannot be understood. */
const USAGE = 64;

/** Asked for, help is a result; without a program it is what is wrong. */
async function showHelp(asked: string | undefined): Promise<void> {
  const { vendorHelp } = await import("./cli/vendor-help.ts");
  (asked === undefined ? process.stderr : process.stdout).write(vendorHelp());
  process.exitCode = asked === undefined ? USAGE : 0;
}

type Tool = (args: readonly string[], world: CliContext) => Promise<number>;

async function runTool(args: readonly string[], signal: AbortSignal, tool: Tool): Promise<void> {
  const world: CliContext = {
    config: readCliConfig(process.env, process.stderr, process.stdout),
    out: (text) => void process.stdout.write(String(text)),
    err: (text) => void process.stderr.write(String(text)),
    signal,
    ...(process.stdin.isTTY && process.stderr.isTTY
      ? { prompt: (question: string) => promptAtTerminal(question, signal) }
      : {}),
    input: readInput,
    loadClusterCommands: () => import("./local/commands.ts"),
  };
  process.on("uncaughtException", (error) => {
    const failure = asCoded(error);
    printFailureNow(guarded(world), failure);
    process.exit(failure.exitCode);
  });
  process.exitCode = await tool([...args], world);
}

async function readInput(): Promise<string> {
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) text += chunk;
  return text;
}

/** On standard error, because standard output is for results. */
async function promptAtTerminal(question: string, signal: AbortSignal): Promise<string> {
  const { createInterface } = await import("node:readline/promises");
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Without this, the terminal takes Ctrl-C for itself.
  terminal.on("SIGINT", () => process.emit("SIGINT"));
  try {
    return await terminal.question(question, { signal });
  } finally {
    terminal.close();
  }
}

/** `vendor PROGRAM`, as a container runs it: structured lines on standard output, and a coded end. */
async function runContainer([name = ""]: readonly string[], signal: AbortSignal): Promise<void> {
  const { NODE_PROGRAMS, PROGRAMS: IN_CLUSTER } = await import("./local/programs/program-table.ts");
  const { errors } = await import("./local/programs/errors.ts");
  const { openLevelOf, runProgram } = await import("./cluster/run-program.ts");
  const { podContext } = await import("./cluster/program.ts");
  const { openLog } = await import("./kit/log.ts");
  const PROGRAMS = { ...IN_CLUSTER, ...NODE_PROGRAMS };
  const load = Object.hasOwn(PROGRAMS, name) ? PROGRAMS[name] : undefined;
  const log = await openLog({
    level: openLevelOf(name, process.env),
    format: "json",
    write: (line) => void process.stdout.write(line),
  });
  process.on("uncaughtException", (error) => {
    log.error({ code: asCoded(error).code, error }, error.message);
    process.exit(1);
  });
  const exitCode = await runProgram(
    async (world) => {
      if (!load) throw errors.PROGRAM_UNKNOWN(name, Object.keys(PROGRAMS));
      await (await load())(world);
    },
    podContext(process.env, signal, log.child({ program: name })),
  );
  // Connections that are still open would keep the process alive.
  process.exit(exitCode);
}

/** The first signal asks the command to finish; the second does not ask. */
function stopOnSignals(interrupt: AbortController): void {
  for (const [name, number] of [
    ["SIGINT", 2],
    ["SIGTERM", 15],
  ] as const) {
    process.on(name, () => {
      if (interrupt.signal.aborted) process.exit(128 + number);
      interrupt.abort();
    });
  }
}

/** `vendorctl … | head` closes our output early; that is its right, not an error. */
function endQuietlyWithoutReader(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
}

await main();
