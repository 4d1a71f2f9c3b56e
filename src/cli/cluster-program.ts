import type { Command } from "commander";
import { CLUSTER_KINDS, type ClusterKind } from "../api/cluster-kinds.ts";
import { dnsLabel, oneOf, release, someText, wholeNumber } from "./flags.ts";
import type { Start } from "./program.ts";

const DEFAULT_NAME = "demo";
const KINDS = Object.keys(CLUSTER_KINDS) as ClusterKind[];
const PROXIES = ["iptables", "nftables", "ipvs", "none"] as const;
const RUNTIMES = ["auto", "netns", "paper"] as const;
const DATASTORES = ["api", "etcd"] as const;
const METHODS = ["operator", "chart", "manifest", "manifest-canal", "manifest-policy-only"] as const;
const MOST_NODES = 1000;

/** `vendorctl cluster …`: the embedded cluster. */
export function addClusterCommands(program: Command, start: Start): void {
  const cluster = program
    .command("cluster")
    .description("a Kubernetes-compatible cluster inside this machine, for trying, testing and CI; not for production");
  const load = () => import("./commands/cluster.ts");
  const named = (command: Command) =>
    command.option("--name <name>", "which cluster", dnsLabel("--name"), DEFAULT_NAME);

  named(cluster.command("up"))
    .description("start a cluster and wait until it is ready")
    .option(
      "--kind <kind>",
      `whose platform to behave like: ${KINDS.join(", ")}`,
      oneOf("--kind", KINDS),
      "generic" as const,
    )
    .option("--nodes <count>", "how many nodes", wholeNumber("--nodes", 1, MOST_NODES), 3)
    .option(
      "--runtime <runtime>",
      "what nodes are: netns (real, needs root), paper (everything but packets), auto (real where they can be), which is so unless told",
      oneOf("--runtime", RUNTIMES),
    )
    .option("--paper", "the same as --runtime paper")
    .option("--subnets <count>", "real nodes in turn on so many subnets", wholeNumber("--subnets", 1, 8))
    .option("--detach", "leave it running in the background")
    .option("--proxy <mode>", `service proxy of the cluster: ${PROXIES.join(", ")}`, oneOf("--proxy", PROXIES))
    .option(
      "--datastore <store>",
      `where our resources live: ${DATASTORES.join(" or ")}`,
      oneOf("--datastore", DATASTORES),
    )
    .option("--installed <version>", "seed it as this older version left it, such as v3.27", release("--installed"))
    .option("--method <method>", `how that version was installed: ${METHODS.join(", ")}`, oneOf("--method", METHODS))
    .option(
      "--old-nodes <count>",
      "how many of the nodes eBPF cannot run on",
      wholeNumber("--old-nodes", 0, MOST_NODES),
    )
    .option(
      "--windows-nodes <count>",
      "how many of the nodes run Windows",
      wholeNumber("--windows-nodes", 0, MOST_NODES),
    )
    .option("--temporary-policy", "that version came from before v3.14, with the temporary policy; needs --installed")
    .option("--user-edits", "somebody changed by hand what that version brought; needs --installed")
    .option("--dual-stack", "IPv4 and IPv6")
    .option(
      "--data-dir <directory>",
      "keep the cluster's objects here",
      someText("--data-dir", "the path of a directory"),
    )
    .option("--port <port>", "port of the API server; a free one unless given", wholeNumber("--port", 1, 65_535))
    .action(start(async () => (await load()).up));
  named(cluster.command("down"))
    .description("stop a cluster and remove it")
    .action(start(async () => (await load()).down));
  cluster
    .command("list")
    .description("the clusters on this machine")
    .action(start(async () => (await load()).list));
  named(cluster.command("kubeconfig"))
    .description("print the path of a cluster's kubeconfig file")
    .action(start(async () => (await load()).kubeconfig));
  named(cluster.command("logs"))
    .description("what a cluster said")
    .option("-f, --follow", "go on as it says more")
    .option("--tail <lines>", "only the last lines", wholeNumber("--tail", 0, 1_000_000))
    .action(start(async () => (await load()).logs));
}
