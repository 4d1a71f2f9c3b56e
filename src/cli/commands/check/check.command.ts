import type { Command } from "commander";
import { CLUSTER_KINDS, type ClusterKind } from "../../../api/tables/cluster-kinds.ts";
import { completedWith, dataplane, oneOf, someText } from "../../flags.ts";
import { document } from "../../help.ts";
import type { Start } from "../../program.ts";

const CHECKED_BEFORE = ["install", "switch", "upgrade"] as const;
const KINDS = Object.keys(CLUSTER_KINDS) as ClusterKind[];

export function addCheckCommand(program: Command, start: Start): void {
  document(program.command("check"), {
    short: "Check cluster health, or the prerequisites of a procedure",
    long: "Check the health of the installed service, or the prerequisites of a procedure with --for. Each finding has a stable code, the evidence, the reason and a fix. Nothing is changed.",
    examples: [
      ["Check the installed service", "vendorctl check"],
      ["Check whether the cluster is ready for an installation", "vendorctl check --pre"],
      ["Check the prerequisites of a switch to eBPF", "vendorctl check --for switch --dataplane bpf"],
      ["Accept a finding, and fail on any other warning", "vendorctl check --suppress VXLAN_PORT_TAKEN --strict"],
    ],
  })
    .option("--pre", "check before an installation; the same as --for install")
    .option(
      "--for <procedure>",
      `check the prerequisites of ${CHECKED_BEFORE.join(", ")}`,
      oneOf("--for", CHECKED_BEFORE),
    )
    .option("--dataplane <bpf|standard>", "the data plane to check for (default: bpf)", dataplane("--dataplane"))
    .option("--kind <kind>", `kind of cluster: ${KINDS.join(", ")} (default: detected)`, oneOf("--kind", KINDS))
    .option("--suppress <codes>", "findings to accept, by code, separated by commas (repeatable)", codes)
    .option("--strict", "treat warnings as failures: exit with 4")
    .option("--no-probe", "do not probe the API server's address from this machine")
    .action(start(async () => (await import("./check.run.ts")).check));
}

export function addStatusCommands(program: Command, start: Start): void {
  document(program.command("status"), {
    short: "Show the health of every component, and the next command",
    long: "Show the health of every component as a tree, with the root cause of a problem and the next command to run.",
    examples: [
      ["Show the status once", "vendorctl status"],
      ["Redraw it whenever something changes", "vendorctl status --watch"],
    ],
  })
    .option("-w, --watch", "update on every change, until Ctrl-C")
    .action(start(async () => (await import("./status.run.ts")).status));
  document(program.command("version"), {
    short: "Show the versions of vendorctl, the service and the API server",
    examples: [["Show the version of vendorctl without asking a cluster", "vendorctl version --client"]],
  })
    .option("--client", "show the version of vendorctl only; no cluster is contacted")
    .action(start(async () => (await import("./version.run.ts")).version));
}

const codes = completedWith("checks", (text: string, before: string[] = []): string[] => {
  const some = someText("--suppress", "codes of checks, with commas between them");
  return [
    ...before,
    ...some(text)
      .split(",")
      .map((code) => code.trim())
      .filter((code) => code !== ""),
  ];
});
