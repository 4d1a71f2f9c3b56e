import type { Command } from "commander";
import { oneOf, someText } from "./flags.ts";
import { addProcedureFlags } from "./procedure-flags.ts";
import type { Start } from "./program.ts";

const PATCH_TYPES = ["merge", "json", "strategic"] as const;
const DATASTORES = ["api", "etcd"] as const;
const file = someText("--filename", "a file, a folder or -");

/** `get`, `apply`, `delete`, `label` and `patch` of v3 resources, with kubectl's words; on either datastore. */
export function addResourceCommands(program: Command, start: Start): void {
  const load = () => import("./commands/resources.ts");

  addSelectionFlags(addStoreFlags(program.command("get")))
    .description("print v3 resources: policies, pools, host endpoints, settings")
    .argument("<kind-and-names...>", "a kind, and names; several kinds with commas, or KIND/NAME")
    .option("-A, --all-namespaces", "of all namespaces")
    .option("--ignore-not-found", "what is not there is no failure")
    .action(start(async () => (await load()).get));

  addFileFlags(addStoreFlags(addProcedureFlags(program.command("apply"))))
    .description("bring v3 resources to what files say, or run a saved plan")
    .option("--force-conflicts", "take over fields that belong to somebody else")
    .action(start(async () => (await load()).apply));

  addSelectionFlags(addFileFlags(addStoreFlags(program.command("delete"))))
    .description("delete v3 resources, by name, by label or as files name them")
    .argument("[kind-and-names...]", "a kind, and names")
    .option("--all", "all of the kind, in the namespace")
    .option("--ignore-not-found", "what is not there is no failure")
    .option("--dry-run [where]", "check everything, change nothing", oneOf("--dry-run", ["client", "server"]))
    .action(start(async () => (await load()).remove));

  addSelectionFlags(addStoreFlags(program.command("label")))
    .description("set and remove labels of v3 resources: KEY=VALUE sets, KEY- removes")
    .argument("<kind-and-names...>", "a kind, names, and labels")
    .option("--overwrite", "also where the label has another value")
    .option("--all", "all of the kind, in the namespace")
    .option("--dry-run [where]", "check everything, change nothing", oneOf("--dry-run", ["client", "server"]))
    .action(start(async () => (await load()).label));

  addStoreFlags(program.command("patch"))
    .description("change some fields of a v3 resource")
    .argument("<kind-and-name...>", "a kind and a name")
    .option("-p, --patch <text>", "the patch, as JSON or YAML", someText("--patch", "a patch"))
    .option("--patch-file <file>", "the file the patch is in", someText("--patch-file", "the path of a file"))
    .option("--type <type>", `${PATCH_TYPES.slice(0, 2).join(" or ")}`, oneOf("--type", PATCH_TYPES), "merge")
    .option("--dry-run [where]", "check everything, change nothing", oneOf("--dry-run", ["client", "server"]))
    .action(start(async () => (await load()).patch));
}

function addStoreFlags(command: Command): Command {
  const path = "the path of a file";
  return command
    .option(
      "--datastore <store>",
      `where the resources are: ${DATASTORES.join(" or ")}`,
      oneOf("--datastore", DATASTORES),
    )
    .option("--etcd-endpoints <urls>", "addresses of etcd, with commas", someText("--etcd-endpoints", "addresses"))
    .option("--etcd-ca <file>", "authority of etcd's certificate", someText("--etcd-ca", path))
    .option("--etcd-cert <file>", "client certificate for etcd", someText("--etcd-cert", path))
    .option("--etcd-key <file>", "its key", someText("--etcd-key", path))
    .option("--config <file>", "file with these settings, instead of vendorctl.cfg", someText("--config", path));
}

function addFileFlags(command: Command): Command {
  return command
    .option("-f, --filename <file>", "a file, a folder or - for standard input (repeatable)", repeatedFiles)
    .option("-R, --recursive", "also folders inside");
}

function addSelectionFlags(command: Command): Command {
  return command.option(
    "-l, --selector <labels>",
    "only with these labels, such as app=web",
    someText("--selector", "labels"),
  );
}

function repeatedFiles(text: string, before: string[] = []): string[] {
  return [...before, file(text)];
}
