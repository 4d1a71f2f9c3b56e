import { Command } from "commander";
import { VERSION } from "../../../api/tables/release.ts";
import { oneOf, wholeNumber } from "../../flags.ts";
import { document, formatHelpFor } from "../../help.ts";
import { guarded } from "../../printable.ts";
import type { CliContext, GlobalFlags, Session } from "../../session.ts";
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
    .version(VERSION, "--version", "print the version")
    .option(
      "-o, --output <format>",
      "table, json or yaml",
      oneOf("--output", ["table", "json", "yaml"]),
      "table" as const,
    )
    .option(
      "-v, --v <level>",
      "log verbosity, 0 to 10; 8 shows stack traces (default: 0)",
      wholeNumber("--v", 0, 10),
      0,
    );
  formatHelpFor(program, world.config.outColumns);
  const session = (): Session => ({ ...world, flags: { ...program.opts<GlobalFlags>(), color: false } });
  document(program.command("show"), {
    short: "Print a table of this node's agent",
    long: "Print a table of what this node's agent has written to the kernel, or of what it knows.",
    examples: [
      ["Print the endpoints of this node", "vendor node show endpoints"],
      ["Print what the agent could not do", "vendor node show problems"],
    ],
  })
    .argument(
      "<table>",
      "endpoints, policies, ip-sets, routes, conntrack, counters, pods, services, settings, problems, switchover, overlay or bgp",
    )
    .action(async (table: string) => (await import("./node-show.run.ts")).nodeShow(session(), table));
  document(program.command("ready"), {
    short: "Print whether this node's agent is ready",
    long: "Print whether this node's agent is ready and, if it is not, why. It fails then: manifests use it as the readiness probe of the agent's container.",
    examples: [["Print why the agent is not ready", "vendor node ready"]],
  }).action(async () => (await import("./node-ready.run.ts")).nodeReady(session()));
  document(program.command("remove"), {
    short: "Remove everything the agent has written to this node",
    long: "Remove programs, tables, routes, pod interfaces, the CNI plugin and the volume driver of sidecars from this node, and verify that nothing is left. vendorctl uninstall runs it on every node; run it on a node that was down.",
    examples: [["Remove everything", "vendor node remove --yes"]],
  })
    .option("--yes", "confirm; pods of this node lose their network")
    .option(
      "--wait <seconds>",
      "how long to wait for a running agent to stop (default: 0)",
      wholeNumber("--wait", 0, 3_600),
      0,
    )
    .action(async (options: { yes?: true; wait: number }) =>
      (await import("./node-remove.run.ts")).nodeRemove(session(), options),
    );
  document(program.command("rescue"), {
    short: "Disable eBPF on this node without the API server",
    long: "Disable eBPF and remove the tables on this node, without the API server.",
    examples: [["Let eBPF be enabled again", "vendor node rescue --over"]],
  })
    .option("--over", "end the rescue: eBPF may be enabled again on this node")
    .action(async (options: { over?: true }) => (await import("./node-rescue.run.ts")).nodeRescue(session(), options));
  program
    .command("rollback-watchdog", { hidden: true })
    .alias("dead-man")
    .description("restore the old data plane unless the agent confirms the new one in time")
    .action(async () => (await import("./node-rescue.run.ts")).nodeWatchdog(session()));
  return program;
}
