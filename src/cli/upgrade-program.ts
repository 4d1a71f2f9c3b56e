import type { Command } from "commander";
import { errors } from "./errors.ts";
import { oneOf, release, someText } from "./flags.ts";
import { addProcedureFlags } from "./procedure-flags.ts";
import type { Start } from "./program.ts";
import { addTrafficFlags } from "./switch-flags.ts";

const METHODS = ["chart", "operator", "manifest"] as const;

/** `upgrade` and `flows`. */
export function addUpgradeCommands(program: Command, start: Start): void {
  const path = "the path of a file";
  const where = "the address the files of a release are published at";
  addTrafficFlags(addProcedureFlags(program.command("upgrade")), "off")
    .description(
      "upgrade the service from v3.15 or later, by the method it was installed with, your edits carried over",
    )
    .option("--to <version>", "the version to upgrade to; the one of this tool unless told", release("--to"))
    .option("--from <version>", "the version that runs, where the cluster does not say it", release("--from"))
    .option("--method <method>", `${METHODS.join(", ")}; found unless told`, oneOf("--method", METHODS))
    .option(
      "--manifest <file>",
      "your edited manifest of the version that runs; found in the cluster unless told",
      someText("--manifest", path),
    )
    .option(
      "--base <file>",
      "that version's manifest as it was published, where this tool does not have it",
      someText("--base", path),
    )
    .option("--take <path=mine|new>", "decide a clash between your edit and the new version (repeatable)", takes)
    .option(
      "--save-manifest <file>",
      "write the new manifest with your edits and comments to this file",
      someText("--save-manifest", path),
    )
    .option("--values <file>", "values for the chart, instead of the release's own", someText("--values", path))
    .option("--chart <chart>", "folder, archive or reference of the chart", someText("--chart", "where the chart is"))
    .option(
      "--manifest-url <url>",
      `${where}; the copies that came with this tool unless told`,
      someText("--manifest-url", where),
    )
    .action(start(async () => (await import("./commands/upgrade.ts")).upgrade));

  const flows = program.command("flows").description("flow logs and the page that shows them, from v3.30 on");
  addProcedureFlags(flows.command("enable"))
    .description("enable flow logs, and wait until they are available")
    .option("--ui", "also the page that shows them")
    .action(start(async () => (await import("./commands/flows.ts")).enableFlows));
  addProcedureFlags(flows.command("disable"))
    .description("disable the page and the flow logs, in this order")
    .action(start(async () => (await import("./commands/flows.ts")).disableFlows));
}

/** `PATH=mine` or `PATH=new`, with the path as the refusal shows it. */
function takes(text: string, before: Record<string, "mine" | "new"> = {}): Record<string, "mine" | "new"> {
  const [, path, side] = /^(\w+\/.+)=(mine|new)$/s.exec(text) ?? [];
  if (path !== undefined && (side === "mine" || side === "new")) return { ...before, [path]: side };
  throw errors.BAD_VALUE(
    "--take",
    text,
    "a path as the refusal shows it, and mine or new, such as Deployment/kube-system/x:spec.replicas=mine",
  );
}
