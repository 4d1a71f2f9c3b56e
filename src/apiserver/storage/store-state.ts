import { Gone } from "./errors.ts";
import { EventHistory } from "./event-history.ts";
import { ObjectTable } from "./object-table.ts";
import type { Stored, WatchEvent } from "./store.ts";
import { WatchSet } from "./watch-set.ts";

interface ResourceState {
  readonly objects: ObjectTable;
  /** What watchers may see: durable events only. */
  readonly history: EventHistory;
  readonly watches: WatchSet;
}

/** Revisions strictly between the two were perhaps handed out and never became durable: a server was killed there. */
export interface Gap {
  readonly after: number;
  readonly until: number;
}

/** All that a store holds in memory. */
export class StoreState {
  /** The newest revision handed out. */
  revision: number;
  readonly #historyLimit: number;
  readonly #resources = new Map<string, ResourceState>();
  readonly #gaps: Gap[] = [];
  /** Nothing is known of what happened before this. */
  readonly #floor: number;

  constructor(floor: number, historyLimit: number) {
    this.#floor = floor;
    this.revision = floor;
    this.#historyLimit = historyLimit;
  }

  /** A resource exists as soon as it is written or watched. */
  resource(name: string): ResourceState {
    let state = this.#resources.get(name);
    if (state === undefined) {
      const history = new EventHistory(this.#historyLimit, this.#floor);
      state = { objects: new ObjectTable(), history, watches: new WatchSet() };
      this.#resources.set(name, state);
    }
    return state;
  }

  known(name: string): ResourceState | undefined {
    return this.#resources.get(name);
  }

  all(): IterableIterator<[string, ResourceState]> {
    return this.#resources.entries();
  }

  /** Makes the objects what they are after this event. */
  apply({ type, resource, stored }: WatchEvent): void {
    const { objects } = this.resource(resource);
    if (type === "DELETED") objects.delete(stored.namespace, stored.name);
    else objects.set(stored);
    this.revision = stored.revision;
  }

  /** Reverts the newest event. */
  undo({ resource, stored, previous }: WatchEvent): void {
    const { objects } = this.resource(resource);
    if (previous === undefined) objects.delete(stored.namespace, stored.name);
    else objects.set(previous);
  }

  jump(gap: Gap): void {
    this.#gaps.push(gap);
    this.revision = gap.until;
  }

  /** Throws Gone unless everything that happened to the resource after this revision is known. */
  assertKept(resource: string, revision: number): void {
    const oldest = this.known(resource)?.history.floor ?? this.#floor;
    const lost = this.#gaps.some((gap) => revision > gap.after && revision < gap.until);
    if (revision < oldest || lost) throw new Gone(revision, oldest);
  }

  /** The objects of a resource before `later`, events of that resource in order. */
  listBefore(later: readonly WatchEvent[], resource: string, namespace: string | undefined): Stored[] {
    const now = this.known(resource)?.objects.list(namespace) ?? [];
    const then = new Map<string, Stored | undefined>();
    for (const event of later.toReversed()) then.set(key(event.stored), event.previous);
    const kept = now.filter((stored) => !then.has(key(stored)));
    for (const stored of then.values()) {
      if (stored !== undefined && (namespace === undefined || stored.namespace === namespace)) kept.push(stored);
    }
    return kept.sort(byNamespaceAndName);
  }
}

function key(stored: Stored): string {
  return `${stored.namespace}/${stored.name}`;
}

function byNamespaceAndName(a: Stored, b: Stored): number {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}
