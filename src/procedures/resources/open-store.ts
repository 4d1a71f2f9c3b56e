import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { clusterInformation } from "../../api/resources/cluster-information.ts";
import { type V3Place, v3Place } from "../../api/resources/v3-places.ts";
import { StatusError } from "../../api/status.ts";
import { VERSION } from "../../api/tables/release.ts";
import { parseVersion } from "../../api/tables/version.ts";
import type { Client } from "../../cluster/client.ts";
import { CONFIG_MAPS } from "../../cluster/kinds.ts";
import { errors as datastoreErrors } from "../../datastore/errors.ts";
import { EtcdConnection } from "../../datastore/etcd/etcd-connection.ts";
import { clusterVersionOf } from "./cluster-version.ts";
import type { EtcdConfig } from "./config.ts";
import { errors } from "./errors.ts";
import { etcdKeeper } from "./etcd-keeper.ts";
import { type Keeper, keptStore } from "./kept-store.ts";
import type { ResourceStore } from "./resource-store.ts";
import { servedStore } from "./served-store.ts";
import { storedKeeper } from "./stored-keeper.ts";

/** v3 resources of a cluster: through the API people use where it is up, else as they are stored, by the same rules. */
export async function openApiStore(client: Client, names: Names, signal?: AbortSignal): Promise<ResourceStore> {
  const resources = await client.resources();
  const { served, stored } = names.groups;
  if (resources.some(({ group }) => group === served.group)) return servedStore(client, names, signal);
  if (!resources.some(({ group }) => group === stored.group)) {
    const endpoints = await etcdEndpoints(client, names);
    if (endpoints !== undefined) throw errors.RESOURCES_IN_ETCD(endpoints);
    throw errors.RESOURCES_NOT_SERVED(`${served.group}/${served.version}`);
  }
  // Read with this tool's own rules first: the version is in a place no version has ever moved.
  const first = storedKeeper(client, names, VERSION, signal);
  const version = await clusterVersionOf((place, ref) => first.find(place, ref), names);
  const known = version !== undefined && parseVersion(version) !== undefined;
  return keptStore(unlessLocked(known ? storedKeeper(client, names, version, signal) : first, names), names);
}

/** Refuses what would be written while the datastore is locked; the lock itself can be written. */
function unlessLocked(keeper: Keeper, names: Names): Keeper {
  const lock = v3Place(clusterInformation, names);
  const open = async ({ noun }: V3Place) => {
    if (noun === lock.noun) return;
    const information = await keeper.find(lock, { name: names.singleton });
    const { datastoreReady } = (information?.["spec"] ?? {}) as { datastoreReady?: boolean };
    if (datastoreReady === false) throw datastoreErrors.DATASTORE_LOCKED("the Kubernetes API");
  };
  return {
    ...keeper,
    async apply(place, given) {
      await open(place);
      return await keeper.apply(place, given);
    },
    async replace(place, object) {
      await open(place);
      return await keeper.replace(place, object);
    },
    async remove(place, object) {
      await open(place);
      await keeper.remove(place, object);
    },
  };
}

/** As the manifest's ConfigMap has them, where it can be read. */
async function etcdEndpoints(client: Client, { manifests, namespaces }: Names): Promise<string | undefined> {
  try {
    const ref = { namespace: namespaces.orchestratorSystem, name: manifests.configMap };
    const { data } = await client.get<KubeObject & { data?: Record<string, string> }>(CONFIG_MAPS, ref);
    return data?.[manifests.etcdEndpointsKey] || undefined;
  } catch (error) {
    if (error instanceof StatusError) return undefined;
    throw error;
  }
}

export function openEtcdStore(
  config: EtcdConfig,
  names: Names,
  options: { now: () => Date; signal?: AbortSignal },
): ResourceStore {
  const { now, signal } = options;
  const { endpoints, user, ...tls } = config;
  const etcd = new EtcdConnection({ endpoints, tls: () => tls, ...(user && { user }), ...(signal && { signal }) });
  return keptStore(etcdKeeper(etcd, names, now), names);
}
