import { setMaxListeners } from "node:events";
import type { KubeObject, ObjectRef, ResourceKind } from "../../api/object.ts";
import { StatusError } from "../../api/status.ts";
import type { Client, ListOptions } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { errors } from "./errors.ts";

const MANY = 100;

/** Reads a cluster for which nothing can be taken for granted: what this server does not serve is simply not there. */
export interface Reader {
  list<T extends KubeObject>(kind: ResourceKind, options?: ListOptions): Promise<T[]>;
  get<T extends KubeObject>(kind: ResourceKind, ref: ObjectRef): Promise<T | undefined>;
  /** For what an observation can do without: undefined also where the user may not read it. */
  getIfAllowed<T extends KubeObject>(kind: ResourceKind, ref: ObjectRef): Promise<T | undefined>;
}

/** `aggregated` is the group another server answers for; while that one is away, nothing of it can be seen. */
export function createReader(client: Client, aggregated: string, signal: AbortSignal | undefined): Reader {
  // Everything is asked at once, and each request listens for the same stop.
  if (signal) setMaxListeners(MANY, signal);
  const isAbsent = (error: unknown, kind: ResourceKind) =>
    isNotFound(error) || (kind.group === aggregated && error instanceof StatusError && error.code === 503);

  return {
    list: async <T extends KubeObject>(kind: ResourceKind, options: ListOptions = {}) => {
      const { items } = await client
        .list<T>(kind, { ...options, ...(signal ? { signal } : {}) })
        .catch((error: unknown) => {
          if (isAbsent(error, kind)) return { items: [] as T[] };
          throw named(error, "list", kind, options.namespace);
        });
      return items;
    },
    get: <T extends KubeObject>(kind: ResourceKind, ref: ObjectRef) =>
      client.get<T>(kind, ref, signal ? { signal } : {}).catch((error: unknown) => {
        if (isAbsent(error, kind)) return undefined;
        throw named(error, "get", kind, ref.namespace);
      }),
    getIfAllowed: <T extends KubeObject>(kind: ResourceKind, ref: ObjectRef) =>
      client.get<T>(kind, ref, signal ? { signal } : {}).catch((error: unknown) => {
        if (isAbsent(error, kind) || (error instanceof StatusError && error.code === 403)) return undefined;
        throw error;
      }),
  };
}

function named(error: unknown, verb: string, kind: ResourceKind, namespace: string | undefined): unknown {
  if (!(error instanceof StatusError) || error.code !== 403) return error;
  const resource = kind.group === "" ? kind.plural : `${kind.plural}.${kind.group}`;
  const where = namespace ? `in the namespace ${namespace}` : kind.namespaced ? "in all namespaces" : "of the cluster";
  return errors.OBSERVE_FORBIDDEN(verb, resource, where).from(error);
}
