import type { Command } from "commander";
import { CLUSTER_KINDS, type ClusterKind } from "../api/cluster-kinds.ts";
import { DATAPLANES, dataplane, oneOf, someText } from "./flags.ts";
import type { Start } from "./program.ts";

const CHECKED_BEFORE = ["install", "switch", "upgrade"] as const;

/** Commands that look and change nothing. */
export function addCheckCommands(program: Command, start: Start): void {
  program
    .command("check")
    .description("whether everything is as it must be: what runs, or what a procedure needs before it starts")
    .option("--pre", "before anything is installed; the same as --for install")
    .option("--for <procedure>", `what this one needs: ${CHECKED_BEFORE.join(", ")}`, oneOf("--for", CHECKED_BEFORE))
    .option("--dataplane <mode>", `checked for: ${DATAPLANES.join(" or ")}`, dataplane("--dataplane"))
    .option("--kind <kind>", "the kind of cluster, where it does not show", oneOf("--kind", KINDS))
    .option("--suppress <codes>", "findings you accept, by code, with commas (repeatable)", codes)
    .option("--strict", "warnings are failures too: exit with 4")
    .option("--no-probe", "do not try the API server's address from this machine")
    .action(start(async () => (await import("./commands/check.ts")).check));
  program
    .command("status")
    .description("how every part of the service is, the cause of what is wrong, and what to run next")
    .option("-w, --watch", "again whenever something changes, until Ctrl-C")
    .action(start(async () => (await import("./commands/status.ts")).status));
  program
    .command("version")
    .description("the versions of vendorctl, of the service in the cluster and of its API server")
    .option("--client", "of vendorctl only; asks no cluster")
    .action(start(async () => (await import("./commands/version.ts")).version));
}

const KINDS = Object.keys(CLUSTER_KINDS) as ClusterKind[];

function codes(text: string, before: string[] = []): string[] {
  const some = someText("--suppress", "codes of checks, with commas between them");
  return [
    ...before,
    ...some(text)
      .split(",")
      .map((code) => code.trim())
      .filter((code) => code !== ""),
  ];
}
