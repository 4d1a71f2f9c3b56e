import { lineOf, versionDifference } from "../procedures/checks/versions.ts";
import { readServiceVersion, type ServiceVersion } from "../procedures/service-version.ts";
import { readServerVersion, type ServerVersion } from "./commands/check/server-version.ts";
import { withCluster } from "./connect.ts";
import { errors } from "./errors.ts";
import { nameSet } from "./name-set.ts";
import type { Session } from "./session.ts";

export function clusterVersions(session: Session): Promise<{ server: ServerVersion; service: ServiceVersion }> {
  return withCluster(session, async (client, signal) => {
    const server = await readServerVersion(client, signal);
    return { server, service: await readServiceVersion(client, nameSet(session), signal) };
  });
}

/** What to do about a cluster of another minor version. An older one is upgraded by this tool; a newer one needs a newer tool, and is an error. */
export function adviseMismatch(cluster: string | undefined, tool: string): string | undefined {
  const difference = versionDifference(cluster, tool);
  if (cluster === undefined || difference === undefined || difference === "same line") return undefined;
  if (difference === "cluster older") return "vendorctl check --for upgrade && vendorctl upgrade";
  throw errors.VERSION_MISMATCH(tool, cluster, lineOf(cluster), difference);
}
