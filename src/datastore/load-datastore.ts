import type { Transport } from "../api/transport.ts";
import type { EtcdOptions } from "./etcd/etcd-connection.ts";
import type { EtcdDatastore } from "./open-datastore.ts";

/** Loaded where it is needed: most installations keep everything in the Kubernetes API. */
export async function loadEtcdDatastore(
  options: EtcdOptions | undefined,
  kubernetes: Transport,
): Promise<EtcdDatastore | undefined> {
  if (!options) return undefined;
  const { openEtcdDatastore } = await import("./open-datastore.ts");
  return openEtcdDatastore(options, kubernetes);
}
