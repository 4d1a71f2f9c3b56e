import type { Names } from "../../api/names.ts";
import { VERSION } from "../../api/tables/release.ts";
import { parseVersion } from "../../api/tables/version.ts";
import type { Client } from "../../cluster/client.ts";
import { clusterVersionOf } from "./cluster-version.ts";
import type { EtcdConfig } from "./config.ts";
import { errors } from "./errors.ts";
import { EtcdClient } from "./etcd-client.ts";
import { etcdKeeper } from "./etcd-keeper.ts";
import { keptStore } from "./kept-store.ts";
import type { ResourceStore } from "./resource-store.ts";
import { servedStore } from "./served-store.ts";
import { storedKeeper } from "./stored-keeper.ts";

/** v3 resources of a cluster: through the API people use where it is up, else as they are stored, by the same rules. */
export async function openApiStore(client: Client, names: Names, signal?: AbortSignal): Promise<ResourceStore> {
  const resources = await client.resources();
  const { served, stored } = names.groups;
  if (resources.some(({ group }) => group === served.group)) return servedStore(client, names, signal);
  if (!resources.some(({ group }) => group === stored.group)) {
    throw errors.RESOURCES_NOT_SERVED(`${served.group}/${served.version}`);
  }
  // Read with this tool's own rules first: the version is in a place no version has ever moved.
  const first = storedKeeper(client, names, VERSION, signal);
  const version = await clusterVersionOf((place, ref) => first.find(place, ref), names);
  const known = version !== undefined && parseVersion(version) !== undefined;
  return keptStore(known ? storedKeeper(client, names, version, signal) : first, names);
}

export function openEtcdStore(
  config: EtcdConfig,
  names: Names,
  options: { now: () => Date; signal?: AbortSignal },
): ResourceStore {
  const { now, signal } = options;
  return keptStore(etcdKeeper(new EtcdClient({ ...config, ...(signal && { signal }) }), names, now), names);
}
