import type { Client } from "../../cluster/client.ts";
import { errors } from "./errors.ts";
import { missingRights } from "./missing-rights.ts";
import { groupRights, type Right, type RightGroup, resourceName, rightKey } from "./right.ts";

/** Refuses with every right that is missing, before anything is changed. `command` is what needs them. */
export async function requireRights(
  client: Client,
  rights: readonly Right[],
  command: string,
  signal?: AbortSignal,
): Promise<void> {
  const missing = (await missingRights(client, rights, signal)).filter(({ optional }) => !optional);
  if (missing.length > 0) throw rightsMissing(missing, command);
}

export function rightsMissing(missing: readonly Right[], command: string): Error {
  const groups = groupRights(missing);
  const count = new Set(missing.map(rightKey)).size;
  return errors.RIGHTS_MISSING(count, groups.map(sentenceOf).join("; "), command);
}

/** `get, patch daemonsets.apps kube-proxy in kube-system`. */
function sentenceOf(group: RightGroup): string {
  const { verbs, names, namespace } = group;
  const named = names.length === 0 ? "" : ` ${names.join(", ")}`;
  return `${verbs.join(", ")} ${resourceName(group)}${named}${namespace === undefined ? "" : ` in ${namespace}`}`;
}
