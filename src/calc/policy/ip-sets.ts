import { PORT_PROTOCOLS } from "../../api/tables/protocols.ts";
import type { AccountSet, IpSet, SetsDelta } from "../model.ts";
import { orMake } from "../or-make.ts";
import { LabelIndex } from "./label-index.ts";
import type { LabeledEndpoint } from "./labeled-endpoints.ts";
import type { SetSource } from "./set-source.ts";

/** Backends of one service, as its endpoint slices list them. */
export interface ServiceBackends {
  /** Of a set of kind `net` and `net-port`. */
  nets: readonly string[];
  netPorts: readonly string[];
}

interface ActiveSet {
  source: SetSource;
  /** How many rules lists use it. */
  users: number;
  /** How many things give each member: two pods may share an address for a moment. */
  members: Map<string, number>;
  /** What each endpoint contributed, so that the same can be removed. */
  given: Map<string, readonly string[]>;
  /** Absent until the set has been emitted. Then what changed since. */
  emitted: { add: Set<string>; remove: Set<string> } | undefined;
}

/** The sets rules in use mean, and who is in them. */
export class IpSets {
  readonly #things = new Map<string, LabeledEndpoint>();
  readonly #backendsOf: (service: string) => ServiceBackends;
  readonly #active = new Map<string, ActiveSet>();
  readonly #byService = new Map<string, Set<string>>();
  readonly #changed = new Set<string>();
  readonly #index = new LabelIndex((set, thing, matches) => this.#give(set, thing, matches));

  /** `backendsOf` is asked by `NAMESPACE/NAME`, and only for services that rules mean. */
  constructor(backendsOf: (service: string) => ServiceBackends) {
    this.#backendsOf = backendsOf;
  }

  use(sources: ReadonlyMap<string, SetSource>): void {
    for (const source of sources.values()) {
      const active = this.#active.get(source.id);
      if (active) active.users++;
      else this.#activate(source);
    }
  }

  release(sources: ReadonlyMap<string, SetSource>): void {
    for (const { id } of sources.values()) {
      const active = this.#active.get(id);
      if (active) active.users--;
      this.#changed.add(id);
    }
  }

  setEndpoint(thing: LabeledEndpoint): void {
    const before = this.#things.get(thing.id);
    this.#things.set(thing.id, thing);
    this.#index.setItem(thing.id, thing.labels);
    if (!before || (sameTexts(before.nets, thing.nets) && samePorts(before, thing))) return;
    for (const set of this.#index.matchesOfItem(thing.id)) this.#give(set, thing.id, true);
  }

  removeEndpoint(id: string): void {
    this.#index.removeItem(id);
    this.#things.delete(id);
  }

  serviceChanged(service: string): void {
    for (const id of this.#byService.get(service) ?? []) this.#give(id, service, true);
  }

  takeDelta(): { ipSets: SetsDelta<IpSet>; accountSets: SetsDelta<AccountSet> } {
    const ipSets: SetsDelta<IpSet> = { set: [], change: [], remove: [] };
    const accountSets: SetsDelta<AccountSet> = { set: [], change: [], remove: [] };
    for (const id of [...this.#changed].sort()) {
      const active = this.#active.get(id);
      if (!active) continue;
      const delta = active.source.of === "account" ? accountSets : ipSets;
      if (active.users > 0) this.#emit(active, delta);
      else {
        this.#deactivate(active);
        if (active.emitted) delta.remove.push(id);
      }
    }
    this.#changed.clear();
    return { ipSets, accountSets };
  }

  #emit(active: ActiveSet, delta: SetsDelta<IpSet> | SetsDelta<AccountSet>): void {
    const { id, kind, meaning } = active.source;
    if (!active.emitted) {
      (delta.set as (IpSet | AccountSet)[]).push({ id, kind, members: [...active.members.keys()].sort(), meaning });
      active.emitted = { add: new Set(), remove: new Set() };
      return;
    }
    const { add, remove } = active.emitted;
    if (add.size === 0 && remove.size === 0) return;
    delta.change.push({ id, add: [...add].sort(), remove: [...remove].sort() });
    active.emitted = { add: new Set(), remove: new Set() };
  }

  #activate(source: SetSource): void {
    const active: ActiveSet = { source, users: 1, members: new Map(), given: new Map(), emitted: undefined };
    this.#active.set(source.id, active);
    this.#changed.add(source.id);
    if (source.of === "service") {
      const key = `${source.namespace}/${source.name}`;
      orMake(this.#byService, key, () => new Set()).add(source.id);
      this.#give(source.id, key, true);
    } else this.#index.setSelector(source.id, source.selector);
  }

  #deactivate({ source }: ActiveSet): void {
    if (source.of === "service") {
      const key = `${source.namespace}/${source.name}`;
      const ids = this.#byService.get(key);
      ids?.delete(source.id);
      if (ids?.size === 0) this.#byService.delete(key);
    } else this.#index.removeSelector(source.id);
    this.#active.delete(source.id);
  }

  /** Replaces what one thing, or one service, gives a set. */
  #give(id: string, giver: string, gives: boolean): void {
    const active = this.#active.get(id);
    if (!active) return;
    this.#changed.add(id);
    const before = active.given.get(giver) ?? [];
    const now = gives ? this.#membersOf(active.source, giver) : [];
    if (now.length > 0) active.given.set(giver, now);
    else active.given.delete(giver);
    for (const member of now) addMember(active, member);
    for (const member of before) dropMember(active, member);
  }

  #membersOf(source: SetSource, giver: string): readonly string[] {
    if (source.of === "service") {
      const { nets, netPorts } = this.#backendsOf(giver);
      return source.kind === "net" ? nets : netPorts;
    }
    const thing = this.#things.get(giver);
    if (!thing) return [];
    if (source.of === "selector") return thing.nets;
    if (source.of === "account") return thing.account === undefined ? [] : [thing.account];
    const { protocol, port: name } = source;
    const ports = thing.ports.filter((port) => port.name === name && port.protocol === protocol);
    return ports.flatMap(({ port }) => thing.nets.map((net) => portMember(net, protocol, port)));
  }
}

/** `10.0.0.1/32,tcp:80` */
export function portMember(net: string, protocol: number, port: number): string {
  return `${net},${PORT_PROTOCOLS.get(protocol) ?? protocol}:${port}`;
}

function addMember({ members, emitted }: ActiveSet, member: string): void {
  const count = members.get(member) ?? 0;
  members.set(member, count + 1);
  if (count === 0 && emitted && !emitted.remove.delete(member)) emitted.add.add(member);
}

function dropMember({ members, emitted }: ActiveSet, member: string): void {
  const count = members.get(member) ?? 0;
  if (count > 1) members.set(member, count - 1);
  else {
    members.delete(member);
    if (emitted && !emitted.add.delete(member)) emitted.remove.add(member);
  }
}

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}

function samePorts(a: LabeledEndpoint, b: LabeledEndpoint): boolean {
  return JSON.stringify(a.ports) === JSON.stringify(b.ports);
}
