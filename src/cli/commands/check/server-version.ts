import type { Client } from "../../../cluster/client.ts";
import { errors } from "../../../cluster/errors.ts";
import { statusError } from "../../../cluster/failures.ts";

/** What an API server reports about itself: `gitVersion`, and any other field. */
export interface ServerVersion extends Record<string, unknown> {
  gitVersion: string;
}

export async function readServerVersion(client: Client, signal: AbortSignal): Promise<ServerVersion> {
  const response = await client.raw({ method: "GET", path: "/version", signal });
  const text = await response.text();
  if (response.status !== 200) throw statusError(response.status, text);
  return parse(text);
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
