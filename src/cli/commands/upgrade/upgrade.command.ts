import type { Command } from "commander";
import { errors } from "../../errors.ts";
import { oneOf, release, someText } from "../../flags.ts";
import { document } from "../../help.ts";
import type { Start } from "../../program.ts";
import { addManifestFlags, addProcedureFlags } from "../runs/procedure.flags.ts";
import { addTrafficFlags, addWaveFlags } from "../switch/switch.flags.ts";
import { ACCEPT_LOSS, lossNames } from "./loss.flags.ts";

const METHODS = ["chart", "operator", "manifest"] as const;

export function addUpgradeCommand(program: Command, start: Start): void {
  const path = "the path of a file";
  const upgrading = document(program.command("upgrade"), {
    short: "Upgrade the service from v3.15 or later",
    long: "Upgrade the service from v3.15 or later, with the method it was installed by. Manual edits are carried over by a three-way merge. The agent of one node is replaced first, the others in waves. Canary traffic is measured meanwhile, and the upgrade is rolled back if it loses more than the budget.",
    examples: [
      ["Check the prerequisites, and show the plan", "vendorctl check --for upgrade && vendorctl plan upgrade"],
      [
        "Upgrade one node of your choice first, then half of the nodes at a time",
        "vendorctl upgrade --canary NODE --wave-size 50%",
      ],
    ],
  });
  const waves = addWaveFlags(
    addProcedureFlags(upgrading),
    "let the DaemonSet replace all agents by its own update strategy",
  );
  addManifestFlags(addTrafficFlags(waves))
    .option("--force", "continue even if canary traffic already fails")
    .option("--to <version>", "version to upgrade to (default: the version of this tool)", release("--to"))
    .option("--from <version>", "installed version (default: detected)", release("--from"))
    .option("--method <method>", `${METHODS.join(", ")} (default: detected)`, oneOf("--method", METHODS))
    .option(
      "--manifest <file>",
      "your edited manifest of the installed version (default: read from the cluster)",
      someText("--manifest", path),
    )
    .option(
      "--base <file>",
      "the installed version's manifest as published (default: the copy in this tool)",
      someText("--base", path),
    )
    .option("--take <path=mine|new>", "resolve a conflict between your edit and the new version (repeatable)", takes)
    .option("--accept-loss <name>", ACCEPT_LOSS, lossNames)
    .option(
      "--save-manifest <file>",
      "write the new manifest with your edits and comments to this file",
      someText("--save-manifest", path),
    )
    .option("--values <file>", "values of the chart (default: those of the Helm release)", someText("--values", path))
    .option("--chart <chart>", "folder, archive or reference of the chart", someText("--chart", "where the chart is"))
    .action(start(async () => (await import("./upgrade.run.ts")).upgrade));
}

/** `PATH=mine` or `PATH=new`, with the path as the error shows it. */
function takes(text: string, before: Record<string, "mine" | "new"> = {}): Record<string, "mine" | "new"> {
  const [, path, side] = /^(\w+\/.+)=(mine|new)$/s.exec(text) ?? [];
  if (path !== undefined && (side === "mine" || side === "new")) return { ...before, [path]: side };
  throw errors.BAD_VALUE(
    "--take",
    text,
    "a path as the error shows it, and mine or new, such as Deployment/kube-system/x:spec.replicas=mine",
  );
}
