import { readCliConfig } from "./cli/config.ts";
import { asCoded, printFailure } from "./cli/failure.ts";
import type { World } from "./cli/session.ts";
import { runVendorctl } from "./cli/vendorctl.ts";

/** The one executable. Today it is vendorctl; the programs that run in a cluster will be picked here by their name. */
async function main(): Promise<void> {
  const interrupt = new AbortController();
  const world: World = {
    config: readCliConfig(process.env, process.stderr),
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    signal: interrupt.signal,
    loadClusterCommands: () => import("./local/commands.ts"),
  };
  stopOnSignals(interrupt);
  endQuietlyWithoutReader();
  process.on("uncaughtException", (error) => {
    const failure = asCoded(error);
    printFailure(world, { output: "table", v: 0 }, failure);
    process.exit(failure.exitCode);
  });
  process.exitCode = await runVendorctl(process.argv.slice(2), world);
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
