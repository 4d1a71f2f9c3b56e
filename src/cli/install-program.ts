import type { Command } from "commander";
import { CLUSTER_KINDS, type ClusterKind } from "../api/cluster-kinds.ts";
import { DATAPLANES, dataplane, oneOf, someText } from "./flags.ts";
import { cidr, fieldEdits, hostAndPort } from "./install-flags.ts";
import { addProcedureFlags } from "./procedure-flags.ts";
import type { Start } from "./program.ts";
import { addTrafficFlags, addWaveFlags } from "./switch-flags.ts";

const KINDS = Object.keys(CLUSTER_KINDS) as ClusterKind[];
const METHODS = ["operator", "chart"] as const;

/** `install`, `switch`, `proxy` and `uninstall`. */
export function addInstallCommands(program: Command, start: Start): void {
  const installing = addFileFlags(addKindFlag(addProcedureFlags(program.command("install"))));
  addInstallFlags(installing)
    .description("install the service, with eBPF where the cluster can run it")
    .action(start(async () => (await import("./commands/install.ts")).install));

  const switching = addApiServerFlag(addKindFlag(addProcedureFlags(program.command("switch"))));
  addTrafficFlags(addWaveFlags(switching), "auto")
    .description("switch the data plane node by node, with the service proxy handed over either way")
    .requiredOption("--to <mode>", `the data plane to switch to: ${DATAPLANES.join(" or ")}`, dataplane("--to"))
    .option("--force", "though no service proxy would serve the standard data plane, or traffic is not well before")
    .action(start(async () => (await import("./commands/switch.ts")).switchDataplane));

  addProxyCommands(program, start);

  addFileFlags(addKindFlag(addProcedureFlags(program.command("uninstall"))))
    .description("take everything away again, in order, and prove that nothing is left")
    .option("--remove-crds", "also the resource definitions, and with them every policy and pool people made")
    .action(start(async () => (await import("./commands/uninstall.ts")).uninstall));
}

function addProxyCommands(program: Command, start: Start): void {
  const proxy = program.command("proxy").description("the orchestrator's service proxy, beside the data plane");
  const load = () => import("./commands/proxy.ts");
  addKindFlag(proxy.command("status"))
    .description("how it stands between the service proxy and the data plane, and what to run")
    .action(start(async () => (await load()).status));
  addKindFlag(addProcedureFlags(proxy.command("disable")))
    .description("disable the service proxy the way this kind of cluster allows")
    .option("--force", "though the data plane is not eBPF and nobody else serves services")
    .action(start(async () => (await load()).disable));
  addKindFlag(addProcedureFlags(proxy.command("restore")))
    .description("bring the service proxy back, and wait until it serves on every node")
    .option("--leave-rules", "beside eBPF: stop removing the proxy's rules first")
    .option("--force", "though eBPF goes on removing its rules")
    .action(start(async () => (await load()).restore));
}

function addInstallFlags(command: Command): Command {
  return addApiServerFlag(command)
    .option(
      "--method <method>",
      `how to install the operator: ${METHODS.join(" or ")}`,
      oneOf("--method", METHODS),
      "operator",
    )
    .option(
      "--dataplane <mode>",
      `${DATAPLANES.join(" or ")}; BPF where it can be unless told`,
      dataplane("--dataplane"),
    )
    .option("--pod-cidr <prefix>", "prefix of the pods' addresses, for the first pool", cidr("--pod-cidr"))
    .option("--set <field=value>", "a field of the Installation (repeatable)", fieldEdits("--set"))
    .option("--flow-logs", "also flow logs")
    .option("--flow-ui", "also the page that shows them; brings flow logs along")
    .option(
      "--chart <chart>",
      "folder, archive or reference of the chart, with --method chart",
      someText("--chart", "where the chart is"),
    )
    .option(
      "--save-custom-resources <file>",
      "write the edited custom resources to this file",
      someText("--save-custom-resources", "the path of a file"),
    );
}

function addApiServerFlag(command: Command): Command {
  return command.option(
    "--api-server <host:port>",
    "the API server's real, stable address; found where it is left out",
    hostAndPort("--api-server"),
  );
}

function addKindFlag(command: Command): Command {
  return command.option(
    "--kind <kind>",
    `kind of cluster, where it does not show: ${KINDS.join(", ")}`,
    oneOf("--kind", KINDS),
  );
}

function addFileFlags(command: Command): Command {
  const what = "the address the files of a release are published at";
  return command.option(
    "--manifest-url <url>",
    `${what}; the copies that came with this tool where it is left out`,
    someText("--manifest-url", what),
  );
}
