import type { CodedError } from "../../../kit/errors.ts";
import type { BackendLists } from "./backend-lists.ts";
import type { RemovedByService } from "./removed-backends.ts";
import type { ServiceFrontends } from "./service-frontends.ts";
import { backendNames } from "./service-rows.ts";

interface Service {
  readonly number: number;
  readonly protocol: number;
  readonly affinity: number;
}

/** One change of the tables on its way: what services pointed to before it, and what they point to after. */
export class ServiceChange {
  /** Frontends a service of this change had; whether another service owns them now is decided at the end. */
  readonly leaving = new Set<string>();
  /** Services that cannot be put into the maps at all. */
  readonly refused = new Map<string, CodedError>();
  private readonly before = new Map<number, { service: Service; lists: Set<number> }>();
  private readonly after = new Map<number, Set<number>>();
  private readonly frontends: ServiceFrontends;

  constructor(frontends: ServiceFrontends) {
    this.frontends = frontends;
  }

  /** Remembers the lists a service's frontends point to now; all that were noted. */
  noteBefore(service: Service, keys: Iterable<string>): ReadonlySet<number> {
    let noted = this.before.get(service.number);
    if (!noted) {
      const { number, protocol, affinity } = service;
      noted = { service: { number, protocol, affinity }, lists: new Set() };
      this.before.set(number, noted);
    }
    return this.pointedTo(service.number, keys, noted.lists);
  }

  /** Records what they point to once they are written; `made`: lists that exist for it, whether or not a frontend points to them. */
  noteAfter(number: number, keys: Iterable<string>, made: Iterable<readonly [number, Buffer]>): void {
    this.after.set(number, this.pointedTo(number, keys, new Set()));
    for (const [list] of made) this.before.get(number)!.lists.add(list);
  }

  get removed(): number[] {
    return [...this.before.keys()].filter((number) => !this.after.has(number));
  }

  /** Retires the lists that no frontend points to; returns the backends that went with them. */
  retire(lists: BackendLists): RemovedByService {
    const gone = new Map<number, { protocol: number; affinity: boolean; backends: Set<string> }>();
    for (const [number, { service, lists: noted }] of this.before) {
      const kept = this.after.get(number) ?? new Set();
      const stale = [...noted].filter((list) => !kept.has(list));
      if (stale.length === 0) continue;
      const namesOf = (ones: Iterable<number>) => [...ones].flatMap((list) => backendNames(lists.get(list) ?? NOTHING));
      const left = new Set(namesOf(kept));
      const backends = new Set(namesOf(stale).filter((name) => !left.has(name)));
      for (const list of stale) lists.retire(list);
      if (backends.size === 0) continue;
      gone.set(number, { protocol: service.protocol, affinity: service.affinity > 0, backends });
    }
    return gone;
  }

  private pointedTo(number: number, keys: Iterable<string>, lists: Set<number>): Set<number> {
    for (const key of keys) {
      const there = this.frontends.get(key);
      if (there?.service !== number) continue;
      for (const list of [there.clusterList, there.localList]) if (list !== 0) lists.add(list);
    }
    return lists;
  }
}

const NOTHING = Buffer.alloc(0);
