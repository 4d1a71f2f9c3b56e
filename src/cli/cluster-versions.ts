import { lineOf, versionDifference } from "../procedures/checks/versions.ts";
import { readServiceVersion, type ServiceVersion } from "../procedures/service-version.ts";
import { withCluster } from "./connect.ts";
import { dialect } from "./dialect.ts";
import { errors } from "./errors.ts";
import { readServerVersion, type ServerVersion } from "./server-version.ts";
import type { Session } from "./session.ts";

export function clusterVersions(session: Session): Promise<{ server: ServerVersion; service: ServiceVersion }> {
  return withCluster(session, async (client, signal) => {
    const server = await readServerVersion(client, signal);
    return { server, service: await readServiceVersion(client, dialect(session), signal) };
  });
}

/** The tool writes to clusters of its own minor version only; of a newer one it must not, of an older one the upgrade comes first. */
export function refuseMismatch(cluster: string | undefined, tool: string): void {
  const difference = versionDifference(cluster, tool);
  if (cluster === undefined || difference === undefined || difference === "same line") return;
  throw errors.VERSION_MISMATCH(tool, cluster, lineOf(cluster), difference);
}
