import { vendorNames } from "../api/names.ts";
import type { KubeObject, OwnerReference } from "../api/object.ts";
import type { Client } from "../cluster/client.ts";
import { isAlreadyExists, isNotFound } from "../cluster/failures.ts";
import { CONFIG_MAPS } from "../cluster/kinds.ts";
import { ownLabels } from "./render/metadata.ts";

/**
 * One cluster has one operator. The first to look after an installation writes its namespace here; copies of it in the same
 * namespace take turns by a lease, and an operator in another namespace reads this and stops. It also leaves its name, so that
 * the status of the cluster can name it.
 */
export const ACTIVE_OPERATOR = { namespace: vendorNames.namespaces.system, name: "active-operator" } as const;
const KEY = "namespace";
const REFUSED = "operator.vendor.io/refused-operator";
/** A refused operator comes back at least every five minutes: the longest a crash loop waits. */
const REFUSED_FOR_MS = 6 * 60_000;

function activeNamespace(map: KubeObject | undefined): string | undefined {
  return (map?.["data"] as Record<string, string> | undefined)?.[KEY];
}

/** As one of the network's objects: reconciled, and removed with the rest. */
export function activeOperatorMap(namespace: string, owner: OwnerReference | undefined): KubeObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      ...ACTIVE_OPERATOR,
      labels: ownLabels("network"),
      ...(owner ? { ownerReferences: [{ ...owner, blockOwnerDeletion: false }] } : {}),
    },
    data: { [KEY]: namespace },
  };
}

/** Of two that claim at once, one gets a conflict. */
export async function claim(client: Client, map: KubeObject, manager: string): Promise<string | undefined> {
  try {
    return activeNamespace(await client.create(CONFIG_MAPS, map, { fieldManager: manager }));
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return activeNamespace(await client.get(CONFIG_MAPS, ACTIVE_OPERATOR));
  }
}

/** Which namespace's operator looks after this cluster, asked before anything is watched there. */
export async function readActiveNamespace(client: Client): Promise<string | undefined> {
  try {
    return activeNamespace(await client.get(CONFIG_MAPS, ACTIVE_OPERATOR));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Leaves word for the operator that is active. */
export async function reportRefusal(client: Client, namespace: string, now: number, manager: string): Promise<void> {
  const patch = { metadata: { annotations: { [REFUSED]: `${namespace} ${new Date(now).toISOString()}` } } };
  await client.patch(CONFIG_MAPS, ACTIVE_OPERATOR, { type: "merge", patch }, { fieldManager: manager });
}

/** The namespace of another operator that tried to run, not long ago. */
export function refusedOperator(
  map: KubeObject | undefined,
  now: number,
): { namespace: string; forMs: number } | undefined {
  const [namespace, time = ""] = map?.metadata.annotations?.[REFUSED]?.split(" ") ?? [];
  const forMs = Date.parse(time) + REFUSED_FOR_MS - now;
  return namespace && forMs > 0 ? { namespace, forMs } : undefined;
}
