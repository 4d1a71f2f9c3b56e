import type {
  AccountSet,
  ClusterNode,
  DataplaneModel,
  HostEndpoint,
  IpSet,
  ModelDelta,
  ModelProblem,
  Policy,
  Profile,
  Route,
  ServicePort,
  SetsDelta,
  Settings,
  TableDelta,
  WorkloadEndpoint,
} from "./model.ts";
import { settingsOf } from "./settings.ts";

/** A model that takes deltas: what the calculation has emitted so far. */
export class ModelCopy implements DataplaneModel {
  readonly endpoints = new Map<string, WorkloadEndpoint>();
  readonly hostEndpoints = new Map<string, HostEndpoint>();
  readonly policies = new Map<string, Policy>();
  readonly profiles = new Map<string, Profile>();
  readonly ipSets = new Map<string, IpSet>();
  readonly accountSets = new Map<string, AccountSet>();
  readonly routes = new Map<string, Route>();
  readonly nodes = new Map<string, ClusterNode>();
  readonly services = new Map<string, ServicePort>();
  readonly problems = new Map<string, ModelProblem>();
  settings: Settings = settingsOf(undefined, undefined, []);
  inSync = false;

  apply(delta: ModelDelta): void {
    this.inSync = delta.inSync;
    if (delta.settings) this.settings = delta.settings;
    applyTable(this.endpoints, delta.endpoints, ({ id }) => id);
    applyTable(this.hostEndpoints, delta.hostEndpoints, ({ id }) => id);
    applyTable(this.policies, delta.policies, ({ id }) => id);
    applyTable(this.profiles, delta.profiles, ({ id }) => id);
    applyTable(this.routes, delta.routes, ({ cidr }) => cidr);
    applyTable(this.nodes, delta.nodes, ({ name }) => name);
    applyTable(this.services, delta.services, ({ id }) => id);
    applyTable(this.problems, delta.problems, ({ id }) => id);
    applySets(this.ipSets, delta.ipSets);
    if (delta.accountSets) applySets(this.accountSets, delta.accountSets);
  }
}

export function applySets<T extends IpSet | AccountSet>(table: Map<string, T>, delta: SetsDelta<T>): void {
  applyTable(table, delta, ({ id }) => id);
  for (const { id, add, remove } of delta.change) {
    const set = table.get(id);
    if (!set) continue;
    const members = new Set(set.members);
    for (const member of remove) members.delete(member);
    for (const member of add) members.add(member);
    // A new value: a cache keyed by the old one must not be found under the new.
    table.set(id, { ...set, members: [...members].sort() });
  }
}

export function applyTable<T>(table: Map<string, T>, { set, remove }: TableDelta<T>, idOf: (value: T) => string): void {
  for (const id of remove) table.delete(id);
  for (const value of set) table.set(idOf(value), value);
}
