import type { Command } from "commander";
import { errors } from "../../errors.ts";
import { oneOf, someText } from "../../flags.ts";
import { document } from "../../help.ts";
import type { Start } from "../../program.ts";
import { addManifestFlags, addProcedureFlags } from "../runs/procedure.flags.ts";

const PHASES = ["before", "after"] as const;

/** `vendorctl migrate …`: what an upgrade asks of things that are not the service's own. */
export function addMigrateCommands(program: Command, start: Start): void {
  const migrate = document(program.command("migrate"), {
    short: "Migrate what an upgrade would lose or leave behind",
  });
  const load = () => import("./migrate.run.ts");

  addProcedureFlags(
    document(migrate.command("owner-references"), {
      short: "Keep objects owned by v3 resources when their UIDs change (v3.28)",
      long: "Keep objects that v3 resources own. The UIDs of v3 resources change with v3.28, and the garbage collector would delete what they own.",
      examples: [
        ["Around an upgrade that another tool runs", "vendorctl migrate owner-references --phase before"],
        ["When it is over", "vendorctl migrate owner-references --phase after"],
      ],
    }),
  )
    .option(
      "--phase <before|after>",
      "the half to run, around an upgrade by another tool (default: both, waiting for the upgrade in between)",
      oneOf("--phase", PHASES),
    )
    .option(
      "--save-to <file>",
      "write every reference and its outcome to this file too",
      someText("--save-to", "the path of a file"),
    )
    .action(start(async () => (await load()).ownerReferences));

  addProcedureFlags(
    document(migrate.command("host-endpoints"), {
      short: "Replace your all-interfaces host endpoints by automatic ones",
      examples: [["Show which policies would start to apply to nodes", "vendorctl plan migrate host-endpoints"]],
    }),
  )
    .option("--accept-policies", "continue even if policies would start to apply to nodes")
    .option("--delete-temporary-policy", "delete the temporary policy of upgrades from before v3.14 at the end")
    .action(start(async () => (await load()).hostEndpoints));

  addManifestFlags(
    addProcedureFlags(
      document(migrate.command("sidecars"), {
        short: "Update the mesh's sidecar injector and restart its workloads",
        examples: [["For version 1.15 of the mesh", "vendorctl migrate sidecars --mesh-version 1.15"]],
      }),
    ),
  )
    .requiredOption("--mesh-version <version>", "version of the mesh", meshVersion)
    .action(start(async () => (await load()).sidecars));
}

/** It becomes part of a file's name, so it may hold nothing else. */
function meshVersion(text: string): string {
  const plain = text.replace(/^v/, "");
  if (/^\d+(\.\d+){0,2}$/.test(plain)) return plain;
  throw errors.BAD_VALUE("--mesh-version", text, "a version such as 1.15");
}
