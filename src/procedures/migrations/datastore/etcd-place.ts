import type { KubeObject } from "../../../api/object.ts";
import { SECRETS } from "../../../cluster/kinds.ts";
import { EtcdConnection, type EtcdTls, type EtcdUser } from "../../../datastore/etcd/etcd-connection.ts";
import type { Work } from "../../action.ts";
import { undefinedIfNotFound } from "../../actions/objects/target.ts";
import { errors } from "./errors.ts";

/** How a manifest reaches etcd: its addresses, and where its certificates and its password are. What the Secrets hold is in no plan. */
export type EtcdPlace = {
  endpoints: readonly string[];
  /** Absent where none of the files is used. */
  secret?: SecretPlace;
  /** Keys of the Secret. */
  files: { readonly [file in keyof EtcdTls]?: string };
  /** The Secret of user and password, and their keys there; absent where the manifest names none. */
  user?: { secret: SecretPlace; name: string; password: string };
};

type SecretPlace = { namespace: string; name: string };

type Reading = Pick<Work, "client" | "signal">;

/** Does something with the etcd of an installation, as its own programs reach it. */
export async function withEtcd<T>(
  place: EtcdPlace,
  { client, signal }: Reading,
  work: (etcd: EtcdConnection) => Promise<T>,
): Promise<T> {
  const tls = await readTls(place, { client, signal });
  const user = await readUser(place, { client, signal });
  const etcd = new EtcdConnection({ endpoints: place.endpoints, tls: () => tls, signal, ...(user && { user }) });
  try {
    return await work(etcd);
  } finally {
    etcd.close();
  }
}

async function readTls({ secret, files }: EtcdPlace, reading: Reading): Promise<EtcdTls> {
  if (!secret) return {};
  const value = await readSecret(secret, reading);
  const read = Object.entries(files).map(([file, key]) => [file, value(key)]);
  // The manifest has every file; one that the etcd does not require is empty.
  return Object.fromEntries(read.filter(([, text]) => (text as string).trim() !== ""));
}

/** None where the Secret has none, as that of an earlier manifest, or one whose etcd asks for no user. */
async function readUser({ user }: EtcdPlace, reading: Reading): Promise<EtcdUser | undefined> {
  if (!user) return undefined;
  const value = await readSecret(user.secret, reading);
  const name = value(user.name);
  return name === "" ? undefined : { name, password: value(user.password) };
}

async function readSecret(place: SecretPlace, { client, signal }: Reading): Promise<(key: string) => string> {
  const found = await client.get<KubeObject>(SECRETS, place, { signal }).catch(undefinedIfNotFound);
  if (!found) throw errors.MIGRATE_DATASTORE_NO_SECRET(`${place.namespace}/${place.name}`);
  const data = (found["data"] ?? {}) as Record<string, string>;
  return (key) => Buffer.from(data[key] ?? "", "base64").toString();
}
