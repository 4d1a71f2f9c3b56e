import type { Command } from "commander";
import { oneOf, someText } from "../../flags.ts";
import { document } from "../../help.ts";
import type { Start } from "../../program.ts";
import { addProcedureFlags } from "../runs/procedure.flags.ts";

const PATCH_TYPES = ["merge", "json", "strategic"] as const;
const DATASTORES = ["api", "etcd"] as const;
const file = someText("--filename", "a file, a folder or -");

/** `get`, `apply`, `delete`, `label` and `patch` of v3 resources, with kubectl's words; on either datastore. */
export function addResourceCommands(program: Command, start: Start): void {
  const load = () => import("./resources.run.ts");

  const getting = document(program.command("get"), {
    short: "Display v3 resources: policies, pools, host endpoints, settings",
    examples: [
      ["List the global network policies", "vendorctl get globalnetworkpolicies"],
      ["Print one IP pool as YAML", "vendorctl get ippool default-ipv4-ippool -o yaml"],
      ["List the network policies of all namespaces", "vendorctl get networkpolicies -A -o wide"],
    ],
  })
    .argument("<kind-and-names...>", "a kind and names; several kinds with commas, or KIND/NAME")
    .option("-A, --all-namespaces", "list the resources of all namespaces");
  addSelectionFlags(addStoreFlags(getting))
    .option("--ignore-not-found", "exit with 0 if a resource does not exist")
    .action(start(async () => (await load()).get));

  const applying = document(program.command("apply"), {
    short: "Apply v3 resources from files, or run a saved plan",
    examples: [
      ["Apply the policies of a folder", "vendorctl apply -f policies/ -R"],
      ["Save a plan, and run exactly that plan later", "vendorctl plan upgrade -o yaml > plan.yaml"],
      ["Run it", "vendorctl apply -f plan.yaml"],
    ],
  });
  addFileFlags(addStoreFlags(addProcedureFlags(applying)))
    .option("--force-conflicts", "take over fields that another field manager owns")
    .action(start(async () => (await load()).apply));

  const deleting = document(program.command("delete"), {
    short: "Delete v3 resources by name, label or file",
    examples: [["Delete one policy", "vendorctl delete globalnetworkpolicy deny-all"]],
  }).argument("[kind-and-names...]", "a kind and names");
  addDryRun(addSelectionFlags(addFileFlags(addStoreFlags(deleting))))
    .option("--all", "delete all resources of the kind in the namespace")
    .option("--ignore-not-found", "exit with 0 if a resource does not exist")
    .action(start(async () => (await load()).remove));

  const labelling = document(program.command("label"), {
    short: "Set or remove labels of v3 resources",
    long: "Set or remove labels of v3 resources: KEY=VALUE sets a label, KEY- removes it.",
    examples: [["Set one label and remove another", "vendorctl label hostendpoint node-1 role=edge old-"]],
  }).argument("<kind-and-names...>", "a kind, names and labels");
  addDryRun(addSelectionFlags(addStoreFlags(labelling)))
    .option("--overwrite", "replace labels that have another value")
    .option("--all", "label all resources of the kind in the namespace")
    .action(start(async () => (await load()).label));

  const patching = document(program.command("patch"), {
    short: "Update fields of a v3 resource",
    examples: [["Disable an IP pool", `vendorctl patch ippool old -p '{"spec":{"disabled":true}}'`]],
  }).argument("<kind-and-name...>", "a kind and a name");
  addDryRun(addStoreFlags(patching))
    .option("-p, --patch <text>", "the patch, as JSON or YAML", someText("--patch", "a patch"))
    .option("--patch-file <file>", "file with the patch", someText("--patch-file", "the path of a file"))
    .option("--type <type>", `${PATCH_TYPES.slice(0, 2).join(" or ")}`, oneOf("--type", PATCH_TYPES), "merge")
    .action(start(async () => (await load()).patch));
}

function addDryRun(command: Command): Command {
  const where = oneOf("--dry-run", ["client", "server"]);
  return command.option("--dry-run [where]", "validate everything, change nothing: client or server", where);
}

function addStoreFlags(command: Command): Command {
  const path = "the path of a file";
  return command
    .option(
      "--datastore <store>",
      `where the resources are: ${DATASTORES.join(" or ")} (default: api)`,
      oneOf("--datastore", DATASTORES),
    )
    .option("--etcd-endpoints <urls>", "URLs of etcd, separated by commas", someText("--etcd-endpoints", "addresses"))
    .option("--etcd-ca <file>", "CA certificate of etcd", someText("--etcd-ca", path))
    .option("--etcd-cert <file>", "client certificate for etcd", someText("--etcd-cert", path))
    .option("--etcd-key <file>", "key of the client certificate", someText("--etcd-key", path))
    .option("--config <file>", "file with these settings (default: vendorctl.cfg)", someText("--config", path));
}

function addFileFlags(command: Command): Command {
  return command
    .option("-f, --filename <file>", "a file, a folder or - for standard input (repeatable)", repeatedFiles)
    .option("-R, --recursive", "include folders inside folders");
}

function addSelectionFlags(command: Command): Command {
  return command.option("-l, --selector <labels>", "label selector, such as app=web", someText("--selector", "labels"));
}

function repeatedFiles(text: string, before: string[] = []): string[] {
  return [...before, file(text)];
}
