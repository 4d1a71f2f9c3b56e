import { errors } from "../../../../datastore/errors.ts";

export function parsedJson(key: string, value: string): object {
  try {
    const read: unknown = JSON.parse(value);
    if (typeof read === "object" && read !== null && !Array.isArray(read)) return read;
  } catch (error) {
    throw errors.ETCD_VALUE_BAD(key, (error as Error).message).from(error);
  }
  throw errors.ETCD_VALUE_BAD(key, "it is no resource");
}

/** A field that is null says in etcd what an absent one says in a CRD. Entries of lists have their places. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object" || value === null) return value;
  const set = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(set.map(([key, field]) => [key, withoutNulls(field)]));
}
