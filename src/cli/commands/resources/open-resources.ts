import { calicoNames, type Names, vendorNames } from "../../../api/names.ts";
import { loadConnection } from "../../../cluster/kubeconfig.ts";
import { type DatastoreFlags, readDatastoreConfig } from "../../../procedures/resources/config.ts";
import { openApiStore, openEtcdStore } from "../../../procedures/resources/open-store.ts";
import type { ResourceStore } from "../../../procedures/resources/resource-store.ts";
import { withCluster } from "../../connect.ts";
import type { Session } from "../../session.ts";
import { withinTimeout } from "../../within-timeout.ts";

export interface StoreFlags extends DatastoreFlags {
  config?: string;
}

/** What a command on resources works with. */
export interface Resources {
  store: ResourceStore;
  names: Names;
  /** Where a namespaced resource is that names none. */
  namespace: string;
}

/** Runs a function on the v3 resources the flags name: in a cluster, or in a separate etcd. */
export async function withResources<T>(
  session: Session,
  flags: StoreFlags,
  work: (resources: Resources) => Promise<T>,
): Promise<T> {
  const names = session.flags.names === "calico" ? calicoNames : vendorNames;
  const { datastore, etcdEndpoints, etcdCa, etcdCert, etcdKey, config } = flags;
  const chosen = readDatastoreConfig({ datastore, etcdEndpoints, etcdCa, etcdCert, etcdKey, config });
  if (chosen.datastore === "etcd") {
    const { namespace = "default" } = session.flags;
    return await withinTimeout(session, (signal) =>
      work({ store: openEtcdStore(chosen.etcd, names, { now: () => new Date(), signal }), names, namespace }),
    );
  }
  const { kubeconfig, context, namespace: given } = session.flags;
  const { namespace } = loadConnection({ kubeconfig, context, namespace: given });
  return await withCluster(session, async (client, signal) =>
    work({ store: await openApiStore(client, names, signal), names, namespace }),
  );
}
