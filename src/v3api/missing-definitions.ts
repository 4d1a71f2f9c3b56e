import type { V3Kind } from "../aggregated/v3-kinds.ts";
import { groupVersionPath } from "../cluster/paths.ts";
import type { Backend } from "./backend.ts";

/** Which stored resources the main API server does not serve, as a sentence; undefined when it serves all. */
export async function missingDefinitions(backend: Backend, kinds: readonly V3Kind[]): Promise<string | undefined> {
  const path = groupVersionPath(kinds[0]!.stored);
  const { body } = await backend.json<{ resources?: { name: string }[] }>({ method: "GET", path });
  const served = new Set((body.resources ?? []).map(({ name }) => name));
  const missing = kinds.map(({ stored }) => stored.plural).filter((plural) => !served.has(plural));
  return missing.length === 0 ? undefined : `the main API server does not serve ${missing.join(", ")}`;
}
