import type { Names } from "../../api/names.ts";
import { groupVersion } from "../../api/object.ts";
import { StatusError } from "../../api/status.ts";
import type { Call, Incoming, Reply } from "../../apiserver/call.ts";
import type { Core } from "../../apiserver/core.ts";
import { remove } from "../../apiserver/delete.ts";
import type { Handler } from "../../apiserver/http.ts";
import { patch } from "../../apiserver/patch-request.ts";
import { listBody, matcherOf, namespaceOf } from "../../apiserver/read.ts";
import { Registry } from "../../apiserver/registry.ts";
import { type RequestVerb, requestInfo } from "../../apiserver/request-info.ts";
import { refusal } from "../../apiserver/router.ts";
import {
  alreadyExists,
  badRequest,
  expired,
  methodNotAllowed,
  noSuchPath,
  notFound,
  unsupportedMediaType,
} from "../../apiserver/status-errors.ts";
import { StoreConflict } from "../../apiserver/storage/errors.ts";
import type { Stored } from "../../apiserver/storage/store.ts";
import { storedFrom } from "../../apiserver/storage/stored.ts";
import { type WatchStore, watch } from "../../apiserver/watch.ts";
import { create, update } from "../../apiserver/write.ts";
import { CodedError } from "../../kit/errors.ts";
import { type DatastoreKind, datastoreKinds } from "../datastore-kinds.ts";
import type { EtcdConnection } from "./etcd-connection.ts";
import { type EtcdValue, RevisionGone, readFolder, readKey, readPage } from "./etcd-keys.ts";
import { EtcdLock, informationKey } from "./etcd-lock.ts";
import { EtcdTransaction } from "./etcd-transaction.ts";
import { etcdWatch } from "./etcd-watch.ts";

export interface EtcdApiOptions {
  etcd: EtcdConnection;
  names: Names;
  now?: () => Date;
}

/** Writers who overtake each other this often are not waited for. */
const ATTEMPTS = 5;
const APPLY = "application/apply-patch+yaml";

/**
 * The datastore's kinds as a Kubernetes API: requests in, objects of etcd out. What a write makes of an object is decided by the API
 * server's own code, between a read and a transaction on the revision that was read.
 */
export class EtcdApi implements Handler {
  readonly #etcd: EtcdConnection;
  readonly #kinds: ReadonlyMap<string, DatastoreKind>;
  readonly #core: Omit<Core, "store">;
  readonly #lock: EtcdLock;
  /** Where the lock itself is: that can be written at any time. */
  readonly #information: string;
  /** Which etcd a kind was listed from: another one's revisions mean nothing. */
  readonly #listed = new Map<DatastoreKind, number>();

  constructor({ etcd, names, now = () => new Date() }: EtcdApiOptions) {
    this.#etcd = etcd;
    this.#kinds = datastoreKinds(names);
    this.#lock = new EtcdLock(etcd, names);
    this.#information = informationKey(names);
    this.#core = { registry: new Registry(), admissions: [], now };
  }

  async handle(incoming: Incoming): Promise<Reply> {
    try {
      return await this.#route(incoming);
    } catch (error) {
      return refusal(asStatus(error));
    }
  }

  async #route({ method, path, search, headers, body, user, signal }: Incoming): Promise<Reply> {
    const query = new URLSearchParams(search);
    const info = requestInfo(method, path, query);
    if (!info.resource) throw noSuchPath();
    const { group, version, plural, namespace, name, subresource, verb } = info;
    const kind = this.#kinds.get(`${group}/${plural}`);
    if (kind?.served.version !== version) throw noSuchPath();
    const { served } = kind;
    if (!(served.verbs as readonly string[]).includes(verb)) throw methodNotAllowed(served, verb);
    if (subresource !== "" && !(subresource === "status" && served.status)) throw noSuchPath();
    if (served.namespaced && namespace === "" && verb !== "list" && verb !== "watch") {
      throw badRequest("an empty namespace may not be set when a resource name is provided");
    }
    return await this.#answer(kind, verb, {
      kind: served,
      namespace,
      name,
      subresource,
      query,
      headers,
      user,
      body,
      signal,
    });
  }

  async #answer(kind: DatastoreKind, verb: RequestVerb, call: Call): Promise<Reply> {
    switch (verb) {
      case "get":
        return await this.#get(kind, call);
      case "list":
        return await this.#list(kind, call);
      case "watch":
        return await this.#watch(kind, call);
      case "create":
        return await this.#write(kind, call, create);
      case "update":
        return await this.#write(kind, call, update);
      case "patch":
        if (call.headers["content-type"]?.startsWith(APPLY)) throw unsupportedMediaType(APPLY, PATCHES);
        return await this.#write(kind, call, patch);
      case "delete":
        return await this.#write(kind, call, remove);
      default:
        throw methodNotAllowed(call.kind, verb);
    }
  }

  async #live(kind: DatastoreKind, { namespace, name }: Pick<Call, "namespace" | "name">): Promise<Stored | undefined> {
    const value = await readKey(this.#etcd, `${kind.folder}${kind.served.namespaced ? `${namespace}/` : ""}${name}`);
    return value && storedOf(kind, value);
  }

  async #get(kind: DatastoreKind, call: Call): Promise<Reply> {
    const stored = await this.#live(kind, call);
    if (!stored) throw notFound(call.kind, call.name);
    return { status: 200, body: [stored.body] };
  }

  /** Pages are etcd's: a continue token is the key after which the next one starts, at the revision of the first. */
  async #list(kind: DatastoreKind, call: Call): Promise<Reply> {
    const match = matcherOf(call);
    const limit = Number(call.query.get("limit") ?? 0) || Number.POSITIVE_INFINITY;
    const token = continueOf(call);
    const exact = call.query.get("resourceVersionMatch") === "Exact" ? Number(call.query.get("resourceVersion")) : 0;
    const folder = folderIn(kind, call);
    const items: Stored[] = [];
    let after = token?.after;
    let revision = token?.revision ?? exact;
    for (let more = true; more; ) {
      const page = await readPage(this.#etcd, folder, { after, revision });
      revision = page.revision;
      this.#listed.set(kind, page.cluster);
      for (const [at, value] of page.values.entries()) {
        after = value.key;
        const stored = storedOf(kind, value);
        if (match(stored)) items.push(stored);
        if (items.length < limit) continue;
        const left = page.more || at < page.values.length - 1;
        const mark = left ? { continue: continueToken({ after, revision }) } : {};
        return listReply(call, items, { resourceVersion: String(revision), ...mark });
      }
      more = page.more;
    }
    return listReply(call, items, { resourceVersion: String(revision) });
  }

  async #watch(kind: DatastoreKind, call: Call): Promise<Reply> {
    const asked = call.query.get("resourceVersion") ?? "";
    const fromNow = asked === "" || asked === "0" || call.query.get("sendInitialEvents") === "true";
    const present = fromNow ? await readFolder(this.#etcd, folderIn(kind, call)) : undefined;
    if (present) this.#listed.set(kind, present.cluster);
    else await this.#etcd.connected();
    const store: WatchStore = {
      revision: present?.revision ?? 0,
      list: () => (present?.values ?? []).map((value) => storedOf(kind, value)),
      durable: () => Promise.resolve(),
      watch: (_resource, from, deliver, options = {}) =>
        etcdWatch(
          { etcd: this.#etcd, folder: folderIn(kind, call), from, cluster: this.#listed.get(kind) },
          { deliver, options, read: (value) => storedOf(kind, value) },
        ),
    };
    return watch({ ...this.#core, store }, call);
  }

  /** One that was overtaken starts again from what is there now, and by that alone is refused or not. */
  async #write(
    kind: DatastoreKind,
    call: Call,
    verb: (core: Core<EtcdTransaction>, call: Call) => Promise<Reply>,
  ): Promise<Reply> {
    for (let left = ATTEMPTS; ; left--) {
      const live = call.name === "" ? undefined : await this.#live(kind, call);
      const lock = this.#information.startsWith(kind.folder) ? undefined : this.#lock;
      const store = new EtcdTransaction({ etcd: this.#etcd, kind, lock }, live);
      try {
        return await verb({ ...this.#core, store }, call);
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error;
        if (call.name === "") throw alreadyExists(call.kind, store.name);
        if (left <= 1) throw error;
      }
    }
  }
}

const PATCHES = ["application/json-patch+json", "application/merge-patch+json"];

function storedOf(kind: DatastoreKind, value: EtcdValue): Stored {
  return storedFrom(kind.read(value), value.revision);
}

function folderIn({ folder }: DatastoreKind, call: Call): string {
  const namespace = namespaceOf(call);
  return namespace === undefined ? folder : `${folder}${namespace}/`;
}

function listReply(call: Call, items: Stored[], metadata: Record<string, unknown>): Reply {
  return { status: 200, body: listBody(call.kind, items, metadata) };
}

interface Continue {
  after: string;
  revision: number;
}

function continueToken(mark: Continue): string {
  return Buffer.from(JSON.stringify(mark)).toString("base64url");
}

function continueOf({ query, kind }: Call): Continue | undefined {
  const token = query.get("continue");
  if (!token) return undefined;
  try {
    const mark = JSON.parse(Buffer.from(token, "base64url").toString()) as Continue;
    if (typeof mark.after === "string" && typeof mark.revision === "number") return mark;
  } catch {
    // Falls through to the refusal.
  }
  throw badRequest(`continue key is not valid: it was not made for ${kind.plural} in ${groupVersion(kind)}`);
}

function asStatus(error: unknown): unknown {
  if (error instanceof RevisionGone) return expired(`The provided resource version is not available: ${error.message}`);
  if (error instanceof CodedError && error.code === "ETCD_UNANSWERED") {
    return new StatusError(504, "Timeout", `${error.message} [${error.code}]`);
  }
  return error;
}
