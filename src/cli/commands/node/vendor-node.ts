import { Command } from "commander";
import { VERSION } from "../../../api/tables/release.ts";
import { oneOf, wholeNumber } from "../../flags.ts";
import { guarded } from "../../printable.ts";
import { type CliContext, type GlobalFlags, OUTPUT_FORMATS, type Session } from "../../session.ts";
import { runProgramTree } from "../../vendorctl.ts";

/** `vendor node show TABLE` and `vendor node remove`: for people on a node, or in its agent's container. */
export async function runVendorNode(argv: readonly string[], world: CliContext): Promise<number> {
  const safe = guarded(world);
  return await runProgramTree(buildNodeProgram(safe), argv, safe);
}

export function buildNodeProgram(world: CliContext): Command {
  const program = new Command("vendor node")
    .description("Show or remove what this node's agent has written to the kernel.")
    .exitOverride()
    .configureOutput({ writeOut: world.out, writeErr: world.out, outputError: () => {} })
    .configureHelp({ showGlobalOptions: true })
    .version(VERSION, "--version", "print the version")
    .option("-o, --output <format>", "table, json or yaml", oneOf("--output", OUTPUT_FORMATS), "table" as const)
    .option(
      "-v, --v <level>",
      "log verbosity, 0 to 10; 8 shows stack traces (default: 0)",
      wholeNumber("--v", 0, 10),
      0,
    );
  const session = (): Session => ({ ...world, flags: { ...program.opts<GlobalFlags>(), color: false } });
  program
    .command("show")
    .description(
      "print a table: endpoints, policies, ip-sets, routes, conntrack, counters, pods, services, settings, problems or switchover",
    )
    .argument("<table>", "which one")
    .action(async (table: string) => (await import("./node-show.run.ts")).nodeShow(session(), table));
  program
    .command("remove")
    .description("remove programs, tables, routes, pod interfaces and the CNI plugin from this node")
    .option("--yes", "confirm; pods of this node lose their network")
    .action(async (options: { yes?: true }) => (await import("./node-remove.run.ts")).nodeRemove(session(), options));
  program
    .command("rescue")
    .description("disable eBPF and remove the tables on this node, without the API server")
    .option("--over", "end the rescue: eBPF may be enabled again on this node")
    .action(async (options: { over?: true }) => (await import("./node-rescue.run.ts")).nodeRescue(session(), options));
  program
    .command("rollback-watchdog", { hidden: true })
    .alias("dead-man")
    .description("restore the old data plane unless the agent confirms the new one in time")
    .action(async () => (await import("./node-rescue.run.ts")).nodeWatchdog(session()));
  return program;
}
