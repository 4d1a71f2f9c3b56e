import type { KubeObject, ObjectRef, ResourceKind } from "../api/object.ts";
import { groupVersion } from "../api/object.ts";
import type { ApiRequest, ApiResponse, Transport } from "../api/transport.ts";
import { type Clock, systemClock } from "../kit/clock.ts";
import { createDiscovery, type DiscoveredResource } from "./discovery.ts";
import { isGone } from "./failures.ts";
import { collectionPath, objectPath } from "./paths.ts";
import { createSender } from "./sender.ts";
import { readEvents, type WatchEvent } from "./watch-events.ts";

/**
 * Any Kubernetes API, typed. What the server refuses is thrown as a `StatusError` (see `failures.ts` for the questions to ask it);
 * what never reached a server is thrown as a coded error. Reads are retried while the server says it is busy; writes never are.
 */
export interface Client {
  get<T extends KubeObject>(kind: ResourceKind, ref: ObjectRef, options?: ReadOptions): Promise<T>;
  /** Everything, however many pages it takes. */
  list<T extends KubeObject>(kind: ResourceKind, options?: ListOptions): Promise<ListResult<T>>;
  /** One page: `limit` objects from `continue` on. */
  listPage<T extends KubeObject>(kind: ResourceKind, options?: PageOptions): Promise<ListResult<T>>;
  /** Events as they come, until the server ends the stream. Throws when the connection breaks or the server reports an error. */
  watch<T extends KubeObject>(kind: ResourceKind, options?: WatchOptions): AsyncIterable<WatchEvent<T>>;
  create<T extends KubeObject>(kind: ResourceKind, object: T, options?: SubresourceOptions): Promise<T>;
  /** Conflicts if `metadata.resourceVersion` is set and no longer the newest. */
  replace<T extends KubeObject>(kind: ResourceKind, object: T, options?: SubresourceOptions): Promise<T>;
  patch<T extends KubeObject>(
    kind: ResourceKind,
    ref: ObjectRef,
    patch: Patch,
    options?: SubresourceOptions,
  ): Promise<T>;
  /** Server-side apply: the object holds the fields we have an opinion on, and nothing else. */
  apply<T extends KubeObject>(kind: ResourceKind, object: KubeObject, options?: ApplyOptions): Promise<T>;
  delete(kind: ResourceKind, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  deleteCollection(kind: ResourceKind, options?: ListOptions & DeleteOptions): Promise<void>;
  /** Where a kind is served, as the server's discovery says. Asked once; asked again for a kind not seen before. */
  resourceFor(type: { apiVersion: string; kind: string }): Promise<ResourceKind>;
  /** Every resource the server has now, subresources left out. */
  resources(): Promise<DiscoveredResource[]>;
  /** Any request as it is; the answer is not looked at. */
  raw(request: ApiRequest): Promise<ApiResponse>;
  close(): void;
}

export interface ReadOptions {
  subresource?: Subresource;
  signal?: AbortSignal;
}

export interface ListOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  resourceVersion?: string;
  resourceVersionMatch?: "NotOlderThan" | "Exact";
  signal?: AbortSignal;
}

export interface PageOptions extends ListOptions {
  limit?: number;
  continue?: string;
}

export interface WatchOptions extends Omit<ListOptions, "resourceVersionMatch"> {
  /** The server ends the stream after this long. */
  timeoutSeconds?: number;
  bookmarks?: boolean;
}

export interface WriteOptions {
  /** The server checks everything and changes nothing. */
  dryRun?: boolean;
  fieldValidation?: "Strict" | "Warn" | "Ignore";
  fieldManager?: string;
  signal?: AbortSignal;
  /** Each warning of the server about what was written. */
  onWarning?(text: string): void;
}

export interface SubresourceOptions extends WriteOptions {
  subresource?: Subresource;
}

export interface ApplyOptions extends SubresourceOptions {
  /** Take fields over from other managers instead of failing with a conflict. */
  force?: boolean;
}

export interface DeleteOptions {
  dryRun?: boolean;
  propagationPolicy?: "Background" | "Foreground" | "Orphan";
  gracePeriodSeconds?: number;
  /** Delete only this very object, or only this state of it. */
  preconditions?: { uid?: string; resourceVersion?: string };
  signal?: AbortSignal;
}

export type Subresource = "status" | "scale" | "eviction";

export type Patch =
  | { type: "json"; operations: JsonPatchOperation[] }
  | { type: "merge"; patch: object }
  | { type: "strategic"; patch: object };

export interface JsonPatchOperation {
  op: "add" | "remove" | "replace" | "move" | "copy" | "test";
  path: string;
  from?: string;
  value?: unknown;
}

export interface ListResult<T> {
  items: T[];
  resourceVersion: string;
  /** Set when there is another page. */
  continue?: string;
}

export interface ClientOptions {
  /** `NAME` or `NAME/VERSION`; the name also is the field manager of applies, unless one is given. */
  userAgent: string;
  clock?: Clock;
}

const PAGE_SIZE = 500;

export function createClient(transport: Transport, options: ClientOptions): Client {
  const { userAgent, clock = systemClock } = options;
  const defaultManager = userAgent.split("/", 1)[0] as string;
  const send = createSender(transport, { userAgent, clock });
  const discovery = createDiscovery(send);

  async function listPage<T extends KubeObject>(kind: ResourceKind, o: PageOptions = {}): Promise<ListResult<T>> {
    const query = { ...selection(o), limit: o.limit?.toString(), continue: o.continue };
    const request: ApiRequest = { method: "GET", path: collectionPath(kind, o.namespace), query, signal: o.signal };
    const list = await send.json<RawList<T>>(request);
    const items = (list.items ?? []).map((item) => withType(kind, item));
    const next = list.metadata?.continue;
    return { items, resourceVersion: list.metadata?.resourceVersion ?? "", ...(next ? { continue: next } : {}) };
  }

  async function list<T extends KubeObject>(kind: ResourceKind, o: ListOptions = {}): Promise<ListResult<T>> {
    const items: T[] = [];
    let page = await listPage<T>(kind, { ...o, limit: PAGE_SIZE });
    items.push(...page.items);
    while (page.continue !== undefined) {
      try {
        page = await listPage<T>(kind, { ...unversioned(o), limit: PAGE_SIZE, continue: page.continue });
      } catch (error) {
        // The pages outlived the server's history. In one piece the list cannot.
        if (isGone(error)) return await listPage<T>(kind, o);
        throw error;
      }
      items.push(...page.items);
    }
    return { items, resourceVersion: page.resourceVersion };
  }

  return {
    get: (kind, ref, o = {}) =>
      send.json({ method: "GET", path: objectPath(kind, ref, o.subresource), signal: o.signal }),
    list,
    listPage,
    watch: (kind, o = {}) => {
      const query = {
        ...selection(o),
        watch: "true",
        allowWatchBookmarks: o.bookmarks ? "true" : undefined,
        timeoutSeconds: o.timeoutSeconds?.toString(),
      };
      const open = () =>
        send.stream({ method: "GET", path: collectionPath(kind, o.namespace), query, signal: o.signal });
      return readEvents(open, o.signal);
    },
    create: (kind, object, o = {}) =>
      send.written(
        {
          method: "POST",
          path: o.subresource
            ? objectPath(kind, object.metadata, o.subresource)
            : collectionPath(kind, object.metadata.namespace),
          query: writing(o),
          headers: JSON_BODY,
          body: JSON.stringify(object),
          signal: o.signal,
        },
        o.onWarning,
      ),
    replace: (kind, object, o = {}) =>
      send.written(
        {
          method: "PUT",
          path: objectPath(kind, object.metadata, o.subresource),
          query: writing(o),
          headers: JSON_BODY,
          body: JSON.stringify(object),
          signal: o.signal,
        },
        o.onWarning,
      ),
    patch: (kind, ref, patch, o = {}) =>
      send.written(
        {
          method: "PATCH",
          path: objectPath(kind, ref, o.subresource),
          query: writing(o),
          headers: { "content-type": PATCH_TYPES[patch.type] },
          body: JSON.stringify(patch.type === "json" ? patch.operations : patch.patch),
          signal: o.signal,
        },
        o.onWarning,
      ),
    apply: (kind, object, o = {}) =>
      send.written(
        {
          method: "PATCH",
          path: objectPath(kind, object.metadata, o.subresource),
          query: {
            ...writing({ ...o, fieldManager: o.fieldManager ?? defaultManager }),
            force: o.force ? "true" : undefined,
          },
          headers: { "content-type": "application/apply-patch+yaml" },
          body: JSON.stringify(object),
          signal: o.signal,
        },
        o.onWarning,
      ),
    delete: async (kind, ref, o = {}) => {
      await send.json(deletion(objectPath(kind, ref), {}, o));
    },
    deleteCollection: async (kind, o = {}) => {
      await send.json(deletion(collectionPath(kind, o.namespace), selection(o), o));
    },
    resourceFor: discovery.resourceFor,
    resources: discovery.resources,
    raw: send.raw,
    close: () => transport.close(),
  };
}

interface RawList<T> {
  metadata?: { resourceVersion?: string; continue?: string };
  items?: T[] | null;
}

const JSON_BODY = { "content-type": "application/json" };
const PATCH_TYPES = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
};

/** Kubernetes leaves apiVersion and kind out of the items of its own lists. */
function withType<T extends KubeObject>(kind: ResourceKind, item: T): T {
  if (item.apiVersion !== undefined && item.kind !== undefined) return item;
  return { ...item, apiVersion: groupVersion(kind), kind: kind.kind };
}

/** A continue token carries its own resource version; servers refuse a second one. */
function unversioned(options: ListOptions): ListOptions {
  const { resourceVersion: _, resourceVersionMatch: __, ...rest } = options;
  return rest;
}

function selection(o: ListOptions): Record<string, string | undefined> {
  return {
    labelSelector: o.labelSelector,
    fieldSelector: o.fieldSelector,
    resourceVersion: o.resourceVersion,
    resourceVersionMatch: o.resourceVersionMatch,
  };
}

function writing(o: WriteOptions): Record<string, string | undefined> {
  return {
    dryRun: o.dryRun ? "All" : undefined,
    fieldValidation: o.fieldValidation,
    fieldManager: o.fieldManager,
  };
}

function deletion(path: string, query: Record<string, string | undefined>, o: DeleteOptions): ApiRequest {
  const body = {
    apiVersion: "v1",
    kind: "DeleteOptions",
    propagationPolicy: o.propagationPolicy,
    gracePeriodSeconds: o.gracePeriodSeconds,
    preconditions: o.preconditions,
    dryRun: o.dryRun ? ["All"] : undefined,
  };
  return { method: "DELETE", path, query, headers: JSON_BODY, body: JSON.stringify(body), signal: o.signal };
}
