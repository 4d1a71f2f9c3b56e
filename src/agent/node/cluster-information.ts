import { randomUUID } from "node:crypto";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { compareVersions, parseVersion } from "../../api/tables/version.ts";
import type { Client } from "../../cluster/client.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../../cluster/failures.ts";
import { CLUSTER_INFORMATION, typeOf } from "../stored-kinds.ts";

type Information = KubeObject & { spec: { vendorVersion?: string; clusterGUID?: string; datastoreReady?: boolean } };

const name = vendorNames.singleton;

/** Sees to it that the cluster has an identity, and that its version is that of its newest agent. Of many agents one gets to write. */
export async function ensureClusterInformation(client: Client, version: string): Promise<void> {
  try {
    const there = await read(client);
    if (!there) {
      const spec = {
        clusterGUID: randomUUID(),
        vendorVersion: version,
        variant: vendorNames.variant,
        datastoreReady: true,
      };
      await client.create(CLUSTER_INFORMATION, { ...typeOf(CLUSTER_INFORMATION), metadata: { name }, spec });
    } else if (isNewer(version, there.spec.vendorVersion) || !there.spec.clusterGUID) {
      const spec = { clusterGUID: randomUUID(), datastoreReady: true, ...there.spec, vendorVersion: version };
      await client.replace(CLUSTER_INFORMATION, { ...there, spec });
    }
  } catch (error) {
    if (!isAlreadyExists(error) && !isConflict(error)) throw error;
  }
}

async function read(client: Client): Promise<Information | undefined> {
  try {
    return await client.get<Information>(CLUSTER_INFORMATION, { name });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function isNewer(version: string, than: string | undefined): boolean {
  const [mine, theirs] = [parseVersion(version), than === undefined ? undefined : parseVersion(than)];
  if (!mine) return false;
  return !theirs || compareVersions(mine, theirs) > 0;
}
