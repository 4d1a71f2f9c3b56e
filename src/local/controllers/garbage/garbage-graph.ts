import { type KubeObject, type OwnerReference, parseGroupVersion, type ResourceKind } from "../../../api/object.ts";

/** One object as the garbage collector sees it: who it is, who owns it, and whether it is on its way out. */
export interface GraphItem {
  key: string;
  resource: ResourceKind;
  name: string;
  namespace: string | undefined;
  uid: string;
  owners: readonly OwnerReference[];
  /** Deleted, and why it is still there. */
  leaving: "no" | "background" | "foreground" | "orphan";
}

export const FOREGROUND = "foregroundDeletion";
export const ORPHAN = "orphan";

export function itemKey(resource: ResourceKind, name: string, namespace: string | undefined): string {
  return `${resource.plural}.${resource.group}|${namespace ?? ""}|${name}`;
}

export function graphItem(resource: ResourceKind, { metadata }: KubeObject): GraphItem {
  const { name, namespace, uid = "", ownerReferences = [], finalizers = [], deletionTimestamp } = metadata;
  let leaving: GraphItem["leaving"] = "no";
  if (deletionTimestamp !== undefined) {
    leaving = finalizers.includes(FOREGROUND) ? "foreground" : finalizers.includes(ORPHAN) ? "orphan" : "background";
  }
  return {
    key: itemKey(resource, name, namespace),
    resource,
    name,
    namespace,
    uid,
    owners: ownerReferences,
    leaving,
  };
}

/**
 * Who owns whom, over every resource the cluster has. The same object may be served by two APIs (one stored, one aggregated),
 * so a UID can stand for several items; an item is named by where it is served.
 */
export class GarbageGraph {
  readonly #items = new Map<string, GraphItem>();
  readonly #byUid = new Map<string, Set<string>>();
  readonly #byOwner = new Map<string, Set<string>>();

  get(key: string): GraphItem | undefined {
    return this.#items.get(key);
  }

  /** Takes a new state of an object; answers with the keys that need looking at because of it. */
  set(item: GraphItem): string[] {
    const before = this.#items.get(item.key);
    const affected = before && before.uid !== item.uid ? this.remove(item.key) : [];
    if (before) this.#unlink(before);
    this.#items.set(item.key, item);
    add(this.#byUid, item.uid, item.key);
    for (const owner of item.owners) add(this.#byOwner, owner.uid, item.key);
    if (this.needsCheck(item)) affected.push(item.key);
    // A dependent that stopped blocking may be the last thing its owner waits for.
    if (before) affected.push(...this.#waitingOwners(before));
    return affected;
  }

  /** The object is gone: its dependents may be garbage now, and owners that waited for it may go. */
  remove(key: string): string[] {
    const item = this.#items.get(key);
    if (!item) return [];
    this.#unlink(item);
    this.#items.delete(key);
    return [...this.#dependentKeys(item.uid), ...this.#waitingOwners(item)];
  }

  keysOf(resource: ResourceKind): string[] {
    const prefix = `${resource.plural}.${resource.group}|`;
    return [...this.#items.keys()].filter((key) => key.startsWith(prefix));
  }

  dependents(item: GraphItem): GraphItem[] {
    return this.#dependentKeys(item.uid)
      .map((key) => this.#items.get(key))
      .filter((dependent) => dependent !== undefined);
  }

  /** Everything whose owner is not in sight: looked at once after the graph is complete. */
  suspects(): string[] {
    return [...this.#items.values()].filter((item) => this.needsCheck(item)).map((item) => item.key);
  }

  /** Whether an owner of it is not in sight or on its way out; only then is a live look worth its price. */
  needsCheck(item: GraphItem): boolean {
    if (item.leaving === "foreground" || item.leaving === "orphan") return true;
    if (item.leaving === "background") return false;
    return item.owners.some((owner) => {
      const seen = this.#find(owner, item.namespace);
      return seen === undefined || seen.leaving === "foreground";
    });
  }

  #find(owner: OwnerReference, namespace: string | undefined): GraphItem | undefined {
    const { group } = parseGroupVersion(owner.apiVersion);
    for (const key of this.#byUid.get(owner.uid) ?? []) {
      const item = this.#items.get(key);
      if (!item || item.name !== owner.name || item.resource.kind !== owner.kind || item.resource.group !== group)
        continue;
      if (item.namespace === undefined || item.namespace === namespace) return item;
    }
    return undefined;
  }

  #dependentKeys(uid: string): string[] {
    return [...(this.#byOwner.get(uid) ?? [])];
  }

  #waitingOwners(item: GraphItem): string[] {
    return item.owners
      .map((owner) => this.#find(owner, item.namespace))
      .filter((owner) => owner?.leaving === "foreground")
      .map((owner) => (owner as GraphItem).key);
  }

  #unlink(item: GraphItem): void {
    drop(this.#byUid, item.uid, item.key);
    for (const owner of item.owners) drop(this.#byOwner, owner.uid, item.key);
  }
}

/**
 * What a live look at an owner found. `unknown`: its API is not there, does not answer, or the reference makes no sense
 * (a cluster-wide object owned by a namespaced one). Not knowing is never a reason to collect.
 */
export type OwnerState = "present" | "absent" | "waiting" | "unknown";

export type Verdict =
  | { do: "nothing" }
  | { do: "delete"; propagation: "Background" | "Foreground" }
  /** Some owners are left: only the references to the others go. */
  | { do: "dropReferences"; uids: string[] };

export function ownerVerdict(owners: readonly { uid: string; state: OwnerState }[], hasDependents: boolean): Verdict {
  if (owners.length === 0 || owners.some(({ state }) => state === "unknown")) return { do: "nothing" };
  const lost = owners.filter(({ state }) => state !== "present").map(({ uid }) => uid);
  if (lost.length === 0) return { do: "nothing" };
  if (lost.length < owners.length) return { do: "dropReferences", uids: lost };
  const waiting = owners.some(({ state }) => state === "waiting");
  return { do: "delete", propagation: waiting && hasDependents ? "Foreground" : "Background" };
}

/** Dependents an owner deleted in the foreground has to outlive. */
export function blockers(owner: GraphItem, dependents: readonly GraphItem[]): GraphItem[] {
  return dependents.filter((dependent) =>
    dependent.owners.some(({ uid, blockOwnerDeletion }) => uid === owner.uid && blockOwnerDeletion === true),
  );
}

function add(index: Map<string, Set<string>>, at: string, key: string): void {
  const keys = index.get(at);
  if (keys) keys.add(key);
  else index.set(at, new Set([key]));
}

function drop(index: Map<string, Set<string>>, at: string, key: string): void {
  const keys = index.get(at);
  keys?.delete(key);
  if (keys?.size === 0) index.delete(at);
}
