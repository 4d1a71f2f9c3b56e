import type { KubeObject } from "../../../api/object.ts";
import { SECRETS } from "../../../cluster/kinds.ts";
import { EtcdConnection, type EtcdTls } from "../../../datastore/etcd/etcd-connection.ts";
import type { Work } from "../../action.ts";
import { undefinedIfNotFound } from "../../actions/objects/target.ts";
import { errors } from "./errors.ts";

/** How a manifest reaches etcd: its addresses, and where the keys of its certificates are. What the Secret holds is in no plan. */
export type EtcdPlace = {
  endpoints: readonly string[];
  /** Absent where none of the files is used. */
  secret?: { namespace: string; name: string };
  /** Keys of the Secret. */
  files: { readonly [file in keyof EtcdTls]?: string };
};

type Reading = Pick<Work, "client" | "signal">;

/** Does something with the etcd of an installation, as its own programs reach it. */
export async function withEtcd<T>(
  place: EtcdPlace,
  { client, signal }: Reading,
  work: (etcd: EtcdConnection) => Promise<T>,
): Promise<T> {
  const tls = await readTls(place, { client, signal });
  const etcd = new EtcdConnection({ endpoints: place.endpoints, tls: () => tls, signal });
  try {
    return await work(etcd);
  } finally {
    etcd.close();
  }
}

async function readTls({ secret, files }: EtcdPlace, { client, signal }: Reading): Promise<EtcdTls> {
  if (!secret) return {};
  const found = await client.get<KubeObject>(SECRETS, secret, { signal }).catch(undefinedIfNotFound);
  if (!found) throw errors.MIGRATE_DATASTORE_NO_SECRET(`${secret.namespace}/${secret.name}`);
  const data = (found["data"] ?? {}) as Record<string, string>;
  const read = Object.entries(files).map(([file, key]) => [file, Buffer.from(data[key] ?? "", "base64").toString()]);
  // The manifest has every file; one that the etcd does not require is empty.
  return Object.fromEntries(read.filter(([, text]) => (text as string).trim() !== ""));
}
