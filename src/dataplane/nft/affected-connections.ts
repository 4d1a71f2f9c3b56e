/** Which flows a change of the model may now forbid. Answers to allowed packets are not asked again, so these must be looked at. */
import type {
  DataplaneModel,
  EndpointPolicy,
  ModelDelta,
  Policy,
  Profile,
  Rule,
  WorkloadEndpoint,
} from "../../calc/model.ts";
import { setsOf } from "./rule-lines.ts";

export interface Touched {
  /** Everything: host policy, or the first look after a start. */
  all: boolean;
  /** Ids of pods. */
  endpoints: Set<string>;
  /** Addresses that were a pod's and are no longer. */
  gone: Set<string>;
}

export const EVERYTHING: Touched = { all: true, endpoints: new Set(), gone: new Set() };

/** `before` has what the delta sets and removes as it was; `model` is as it is now. */
export function touchedBy(
  before: ReadonlyMap<string, WorkloadEndpoint>,
  model: DataplaneModel,
  delta: ModelDelta,
): Touched {
  const policies = changedPolicies(model, delta);
  const uses = ({ tiers, profiles }: EndpointPolicy) =>
    tiers.some((tier) => tier.policies.some((id) => policies.has(id))) || profiles.some((id) => policies.has(id));
  const hosts = [...model.hostEndpoints.values()].some(({ preDNAT, forward, normal, profiles }) =>
    uses({
      tiers: [...preDNAT, ...forward.ingress, ...forward.egress, ...normal.ingress, ...normal.egress],
      profiles,
    }),
  );
  const { set, remove } = delta.hostEndpoints;
  const endpoints = new Set<string>();
  if (policies.size > 0) {
    for (const { id, ingress, egress } of model.endpoints.values())
      if (uses(ingress) || uses(egress)) endpoints.add(id);
  }
  for (const endpoint of delta.endpoints.set)
    if (isChanged(before.get(endpoint.id), endpoint)) endpoints.add(endpoint.id);
  const gone = new Set([...before.values()].flatMap(({ addresses }) => addresses).map(addressOf));
  for (const { addresses } of delta.endpoints.set) for (const net of addresses) gone.delete(addressOf(net));
  // Pods of other nodes, too; and what a new owner has by now was still another's.
  for (const net of delta.released ?? []) gone.add(addressOf(net));
  const all = hosts || set.length > 0 || remove.length > 0 || delta.settings !== undefined;
  return { all, endpoints, gone };
}

export function isNothing({ all, endpoints, gone }: Touched): boolean {
  return !all && endpoints.size === 0 && gone.size === 0;
}

/** The address of a /32 or /128. */
export function addressOf(net: string): string {
  return net.slice(0, net.lastIndexOf("/"));
}

function isChanged(before: WorkloadEndpoint | undefined, now: WorkloadEndpoint): boolean {
  const judged = ({ ingress, egress, addresses }: WorkloadEndpoint) => JSON.stringify([ingress, egress, addresses]);
  return !before || judged(before) !== judged(now);
}

function changedPolicies(model: DataplaneModel, delta: ModelDelta): Set<string> {
  const changed = new Set([...delta.policies.set, ...delta.profiles.set].map(({ id }) => id));
  const changes = new Map(delta.ipSets.change.map((change) => [change.id, change]));
  if (changes.size === 0) return changed;
  for (const owner of [...model.policies.values(), ...model.profiles.values()]) {
    if (rulesOf(owner).some((rule) => mayForbid(rule, changes))) changed.add(owner.id);
  }
  return changed;
}

function rulesOf({ ingress, egress }: Policy | Profile): Rule[] {
  return [...ingress, ...egress];
}

type Change = ModelDelta["ipSets"]["change"][number];

/** A pod that comes grows the sets rules allow: the most frequent change of all, and one that forbids nothing. */
function mayForbid(rule: Rule, changes: ReadonlyMap<string, Change>): boolean {
  if (rule.action === "log") return false;
  const refusing = new Set([
    ...(rule.notSrcSets ?? []),
    ...(rule.notDstSets ?? []),
    ...(rule.notSrcNamedPortSets ?? []),
    ...(rule.notDstNamedPortSets ?? []),
  ]);
  return setsOf(rule).some((id) => {
    const change = changes.get(id);
    if (!change) return false;
    if (rule.action === "pass") return true;
    const fewerMatch = refusing.has(id) ? change.add.length > 0 : change.remove.length > 0;
    const moreMatch = refusing.has(id) ? change.remove.length > 0 : change.add.length > 0;
    return rule.action === "allow" ? fewerMatch : moreMatch;
  });
}
