import { type KubeObject, parseGroupVersion, type ResourceKind } from "../../../api/object.ts";
import { isNotFound } from "../../../cluster/failures.ts";
import { CodedError } from "../../../kit/errors.ts";
import type { Work } from "../../action.ts";

/** Names one object, the way a manifest does. */
export type Target = { apiVersion: string; kind: string; namespace?: string; name: string };

export function targetOf({ apiVersion, kind, metadata }: KubeObject): Target {
  const { namespace, name } = metadata;
  return { apiVersion, kind, ...(namespace === undefined ? {} : { namespace }), name };
}

/** `ConfigMap kube-system/kube-proxy`. */
export function nameOf({ kind, namespace, name }: Target): string {
  return `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
}

/** The live object, or undefined where it, or its whole kind, is not there. */
export async function readTarget({ client, signal }: Work, target: Target): Promise<KubeObject | undefined> {
  const kind = await kindOf(client, target);
  if (kind === undefined) return undefined;
  return client.get<KubeObject>(kind, target, { signal }).catch(undefinedIfNotFound);
}

/** Where the server has this kind, or undefined where it has none of that name. */
export async function kindOf(
  client: Work["client"],
  target: Pick<Target, "apiVersion" | "kind">,
): Promise<ResourceKind | undefined> {
  try {
    return await client.resourceFor(target);
  } catch (error) {
    if (error instanceof CodedError && error.code === "CLUSTER_UNKNOWN_KIND") return undefined;
    throw error;
  }
}

/** The same kind in whichever version the server serves now: an object outlives the version its file was written in. */
export async function kindInAnyVersion(
  client: Work["client"],
  target: Pick<Target, "apiVersion" | "kind">,
): Promise<ResourceKind | undefined> {
  const exact = await kindOf(client, target);
  if (exact) return exact;
  const { group } = parseGroupVersion(target.apiVersion);
  const served = (await client.resources()).filter((one) => one.group === group && one.kind === target.kind);
  return served.find(({ preferred }) => preferred) ?? served[0];
}

export function undefinedIfNotFound(error: unknown): undefined {
  if (isNotFound(error)) return undefined;
  throw error;
}
