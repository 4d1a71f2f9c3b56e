import { type Command, Option } from "commander";
import { CLUSTER_KINDS, type ClusterKind } from "../../../api/tables/cluster-kinds.ts";
import { completedWith, dnsLabel, oneOf, release, someText, wholeNumber } from "../../flags.ts";
import { document } from "../../help.ts";
import type { Start } from "../../program.ts";

export const DEFAULT_NAME = "demo";
const KINDS = Object.keys(CLUSTER_KINDS) as ClusterKind[];
const PROXIES = ["iptables", "nftables", "ipvs", "none"] as const;
const RUNTIMES = ["auto", "netns", "containerd", "simulated"] as const;
const DATASTORES = ["api", "etcd"] as const;
const METHODS = ["operator", "chart", "manifest", "manifest-canal", "manifest-policy-only"] as const;
const MOST_NODES = 1000;

/** `simulated` is the name of nodes without a kernel; `paper` is its earlier name, which stays accepted and stored. */
const runtime = completedWith(RUNTIMES, (text: string) => {
  const choice = oneOf("--runtime", [...RUNTIMES, "paper"] as const)(text);
  return choice === "simulated" ? "paper" : choice;
});

/** `vendorctl cluster …`: the embedded cluster. */
export function addClusterCommands(program: Command, start: Start): void {
  const cluster = document(program.command("cluster"), {
    short: "Run a local Kubernetes-compatible cluster for trials and tests",
    long: "Run a Kubernetes-compatible cluster on this machine, for trials, tests and CI. Not for production.",
    examples: [
      ["Start a cluster of three nodes in the background", "vendorctl cluster up --detach"],
      ["Use it", "export KUBECONFIG=$(vendorctl cluster kubeconfig)"],
      ["Stop it and remove it", "vendorctl cluster down"],
    ],
  });
  const load = () => import("./cluster.run.ts");
  const named = (command: Command) =>
    command.option("--name <name>", "name of the cluster", dnsLabel("--name"), DEFAULT_NAME);

  addUpFlags(
    document(named(cluster.command("up")), {
      short: "Start a cluster and wait until it is ready",
      examples: [
        ["Start a cluster that behaves like EKS", "vendorctl cluster up --kind eks"],
        ["Start one without root: everything but packets", "vendorctl cluster up --runtime simulated"],
        ["Start one with v3.27 installed, to try an upgrade", "vendorctl cluster up --installed v3.27"],
      ],
    }),
  ).action(start(async () => (await load()).up));
  document(named(cluster.command("down")), {
    short: "Stop a cluster and remove it",
    examples: [["Remove the cluster named demo", "vendorctl cluster down --name demo"]],
  }).action(start(async () => (await load()).down));
  document(cluster.command("list"), {
    short: "List the clusters on this machine",
    examples: [["List them as JSON", "vendorctl cluster list -o json"]],
  }).action(start(async () => (await load()).list));
  document(named(cluster.command("kubeconfig")), {
    short: "Print the path of a cluster's kubeconfig file",
    examples: [["Use a cluster in this shell", "export KUBECONFIG=$(vendorctl cluster kubeconfig --name demo)"]],
  }).action(start(async () => (await load()).kubeconfig));
  document(named(cluster.command("logs")), {
    short: "Print the log of a cluster",
    examples: [["Follow the last lines", "vendorctl cluster logs --tail 20 -f"]],
  })
    .option("-f, --follow", "print new lines as they come")
    .option("--tail <lines>", "print the last lines only", wholeNumber("--tail", 0, 1_000_000))
    .action(start(async () => (await load()).logs));
}

function addUpFlags(command: Command): Command {
  return command
    .option("--kind <kind>", `platform to behave like: ${KINDS.join(", ")}`, oneOf("--kind", KINDS), "generic" as const)
    .option("--nodes <count>", "number of nodes", wholeNumber("--nodes", 1, MOST_NODES), 3)
    .option(
      "--runtime <runtime>",
      "netns: real nodes, needs root; containerd: real nodes that run the image in containers; simulated: everything but packets; auto: netns where possible (default: auto)",
      runtime,
    )
    .addOption(new Option("--paper", "the same as --runtime simulated").hideHelp())
    .option(
      "--subnets <count>",
      "spread real nodes over this many subnets (default: 1)",
      wholeNumber("--subnets", 1, 8),
    )
    .option("--detach", "leave it running in the background")
    .option(
      "--proxy <mode>",
      `mode of kube-proxy: ${PROXIES.join(", ")} (default: as the platform has it)`,
      oneOf("--proxy", PROXIES),
    )
    .option(
      "--datastore <store>",
      `where v3 resources are stored: ${DATASTORES.join(" or ")} (default: api)`,
      oneOf("--datastore", DATASTORES),
    )
    .option("--installed <version>", "with this older version installed, such as v3.27", release("--installed"))
    .option(
      "--method <method>",
      `how that version was installed: ${METHODS.join(", ")} (default: operator)`,
      oneOf("--method", METHODS),
    )
    .option("--old-nodes <count>", "nodes whose kernel cannot run eBPF", wholeNumber("--old-nodes", 0, MOST_NODES))
    .option("--windows-nodes <count>", "nodes that run Windows", wholeNumber("--windows-nodes", 0, MOST_NODES))
    .option("--temporary-policy", "with the temporary policy of an upgrade from before v3.14; needs --installed")
    .option("--user-edits", "with manual edits to the installed objects; needs --installed")
    .option("--dual-stack", "with IPv4 and IPv6")
    .option(
      "--data-dir <directory>",
      "keep the cluster's objects in this directory",
      someText("--data-dir", "the path of a directory"),
    )
    .option("--port <port>", "port of the API server (default: a free port)", wholeNumber("--port", 1, 65_535));
}
