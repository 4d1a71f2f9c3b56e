import { VERSION } from "../../../api/tables/release.ts";
import { print } from "../../printer.ts";
import type { Session } from "../../session.ts";

/** The tool's version and the cluster's. They must be of one minor version before the tool writes. */
export async function version(session: Session, options: { client?: true }): Promise<void> {
  const client = { version: VERSION, node: process.version, platform: `${process.platform}/${process.arch}` };
  if (options.client) {
    return await print(session, { client }, () => ({ columns: COLUMNS, rows: [["vendorctl", client.version]] }));
  }
  // Loaded only when a cluster is asked: --client is as quick as Node itself.
  const { clusterVersions, adviseMismatch } = await import("../../cluster-versions.ts");
  const { server, service } = await clusterVersions(session);
  const rows = [
    ["vendorctl", client.version],
    ["service", service.version ?? "not installed"],
    ["API server", server.gitVersion],
  ];
  await print(session, { client, service, server }, () => ({ columns: COLUMNS, rows }));
  const next = adviseMismatch(service.version, client.version);
  if (next !== undefined && !session.flags.quiet) session.err(`next: ${next}\n`);
}

const COLUMNS = ["COMPONENT", "VERSION"];
