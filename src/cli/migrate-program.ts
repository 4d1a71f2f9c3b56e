import type { Command } from "commander";
import { errors } from "./errors.ts";
import { oneOf, someText } from "./flags.ts";
import { addProcedureFlags } from "./procedure-flags.ts";
import type { Start } from "./program.ts";

const PHASES = ["before", "after"] as const;

/** `vendorctl migrate …`: what an upgrade asks of things that are not the service's own. */
export function addMigrateCommands(program: Command, start: Start): void {
  const migrate = program
    .command("migrate")
    .description("carry things over that an upgrade would lose or leave behind");
  const load = () => import("./commands/migrate.ts");

  addProcedureFlags(migrate.command("owner-references"))
    .description("keep what is owned through v3 resources when their UIDs change, from v3.28 on")
    .option(
      "--phase <half>",
      "before or after an upgrade that another tool does; without it, the upgrade is waited for in between",
      oneOf("--phase", PHASES),
    )
    .option(
      "--save-to <file>",
      "also write every reference to this file, and what became of it",
      someText("--save-to", "the path of a file"),
    )
    .action(start(async () => (await load()).ownerReferences));

  addProcedureFlags(migrate.command("host-endpoints"))
    .description("from your own all-interfaces host endpoints to automatic ones")
    .option("--accept-policies", "policies that would start to act on the nodes have been looked at")
    .option("--delete-temporary-policy", "delete the temporary policy of upgrades from before v3.14 at the end")
    .action(start(async () => (await load()).hostEndpoints));

  addProcedureFlags(migrate.command("sidecars"))
    .description("update the mesh's sidecar injector, then restart each workload that has the sidecar")
    .requiredOption("--mesh-version <version>", "version of the mesh", meshVersion)
    .option("--manifest-url <url>", "where the files of the release are", someText("--manifest-url", "an address"))
    .action(start(async () => (await load()).sidecars));
}

/** It becomes part of a file's name, so it may hold nothing else. */
function meshVersion(text: string): string {
  const plain = text.replace(/^v/, "");
  if (/^\d+(\.\d+){0,2}$/.test(plain)) return plain;
  throw errors.BAD_VALUE("--mesh-version", text, "a version such as 1.15");
}
