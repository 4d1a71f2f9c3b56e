import { errors } from "../cluster/errors.ts";
import { statusError } from "../cluster/failures.ts";
import { withCluster } from "./connect.ts";
import type { Session } from "./session.ts";

/** What an API server says about itself: `gitVersion`, and whatever else it tells. */
interface ServerVersion extends Record<string, unknown> {
  gitVersion: string;
}

export function serverVersion(session: Session): Promise<ServerVersion> {
  return withCluster(session, async (client, signal) => {
    const response = await client.raw({ method: "GET", path: "/version", signal });
    const text = await response.text();
    if (response.status !== 200) throw statusError(response.status, text);
    return parse(text);
  });
}

function parse(text: string): ServerVersion {
  try {
    const { gitVersion, ...rest } = JSON.parse(text) as Record<string, unknown>;
    if (typeof gitVersion === "string") return { gitVersion, ...rest };
  } catch {
    // Said below, as for JSON that is something else.
  }
  throw errors.CLUSTER_BAD_ANSWER("/version", `"${text.slice(0, 60).trim()}" has no gitVersion`);
}
