import type {
  AccountSet,
  DataplaneModel,
  EndpointPolicy,
  IpSet,
  Packet,
  Rule,
  RuleMatch,
  SetsDelta,
  TableDelta,
} from "../model.ts";
import { applySets, applyTable, ModelCopy } from "../model-copy.ts";
import { hookVerdict, type Verdict } from "./hook-verdict.ts";

/** What of the model decides which requests one pod receives: all its sidecar needs. */
export interface PodPolicy {
  /** Null: there is no such pod on this node. */
  ingress: EndpointPolicy | null;
  policies: ReadonlyMap<string, IngressRules>;
  profiles: ReadonlyMap<string, IngressRules>;
  ipSets: ReadonlyMap<string, IpSet>;
  accountSets: ReadonlyMap<string, AccountSet>;
}

/** Of a policy or a profile. */
interface IngressRules {
  id: string;
  ingress: Rule[];
}

/** What changed. Applied to nothing, the first one is the whole. */
export interface PodPolicyDelta {
  /** Absent where it did not change. */
  ingress?: EndpointPolicy | null;
  policies: TableDelta<IngressRules>;
  profiles: TableDelta<IngressRules>;
  ipSets: SetsDelta<IpSet>;
  accountSets: SetsDelta<AccountSet>;
}

const NOTHING: PodPolicy = {
  ingress: null,
  policies: new Map(),
  profiles: new Map(),
  ipSets: new Map(),
  accountSets: new Map(),
};

/** `pod` is `NAMESPACE/NAME`. Values are the model's own, so that what did not change is the same value. */
export function podPolicy(model: DataplaneModel, pod: string | undefined): PodPolicy {
  const ingress = pod === undefined ? undefined : model.endpoints.get(pod)?.ingress;
  if (!ingress) return NOTHING;
  const policyIds = ingress.tiers.flatMap(({ policies }) => policies);
  const policies = chosen(model.policies, policyIds);
  const profiles = chosen(model.profiles, ingress.profiles);
  const rules = [...policies.values(), ...profiles.values()].flatMap((one) => one.ingress);
  return {
    ingress,
    policies,
    profiles,
    ipSets: chosen(model.ipSets, rules.flatMap(setsOf)),
    accountSets: chosen(
      model.accountSets,
      rules.flatMap(({ srcAccountSets = [], dstAccountSets = [] }) => [...srcAccountSets, ...dstAccountSets]),
    ),
  };
}

function setsOf(rule: RuleMatch): string[] {
  return [
    ...[rule.srcSets, rule.notSrcSets, rule.dstSets, rule.notDstSets],
    ...[rule.srcNamedPortSets, rule.notSrcNamedPortSets, rule.dstNamedPortSets, rule.notDstNamedPortSets],
  ].flatMap((ids) => ids ?? []);
}

function chosen<T>(table: ReadonlyMap<string, T>, ids: readonly string[]): Map<string, T> {
  const found = new Map<string, T>();
  for (const id of ids) {
    const value = table.get(id);
    if (value !== undefined) found.set(id, value);
  }
  return found;
}

/** Undefined where nothing changed. Without `before` it is the whole. */
export function podPolicyDelta(before: PodPolicy | undefined, now: PodPolicy): PodPolicyDelta | undefined {
  const old = before ?? NOTHING;
  const delta: PodPolicyDelta = {
    ...(before && sameText(before.ingress, now.ingress) ? {} : { ingress: now.ingress }),
    policies: tableDelta(old.policies, now.policies),
    profiles: tableDelta(old.profiles, now.profiles),
    ipSets: setsDelta(old.ipSets, now.ipSets),
    accountSets: setsDelta(old.accountSets, now.accountSets),
  };
  const { ingress, policies, profiles, ipSets, accountSets } = delta;
  const changes = [policies, profiles, ipSets, accountSets].flatMap((table) => [...table.set, ...table.remove]);
  const members = ipSets.change.length + accountSets.change.length;
  return ingress === undefined && changes.length + members === 0 ? undefined : delta;
}

function tableDelta(
  old: ReadonlyMap<string, IngressRules>,
  now: ReadonlyMap<string, IngressRules>,
): TableDelta<IngressRules> {
  const changed = [...now.values()].filter((value) => {
    const before = old.get(value.id);
    return before !== value && !(before && sameText(before.ingress, value.ingress));
  });
  return { set: changed.map(({ id, ingress }) => ({ id, ingress })), remove: gone(old, now) };
}

function setsDelta<T extends IpSet | AccountSet>(
  old: ReadonlyMap<string, T>,
  now: ReadonlyMap<string, T>,
): SetsDelta<T> {
  const delta: SetsDelta<T> = { set: [], change: [], remove: gone(old, now) };
  for (const value of now.values()) {
    const before = old.get(value.id);
    if (!before) delta.set.push(value);
    else if (before !== value) {
      const { add, remove } = memberChange(before, value);
      if (add.length + remove.length > 0) delta.change.push({ id: value.id, add, remove });
    }
  }
  return delta;
}

function gone(old: ReadonlyMap<string, unknown>, now: ReadonlyMap<string, unknown>): string[] {
  return [...old.keys()].filter((id) => !now.has(id));
}

type MemberChange = { add: string[]; remove: string[] };

/** Many pods have the same large sets: each change of one is calculated once. */
const memberChanges = new WeakMap<object, WeakMap<object, MemberChange>>();

function memberChange(before: IpSet | AccountSet, now: IpSet | AccountSet): MemberChange {
  const known = memberChanges.get(before) ?? new WeakMap<object, MemberChange>();
  memberChanges.set(before, known);
  const found = known.get(now);
  if (found) return found;
  const [old, fresh] = [new Set(before.members), new Set(now.members)];
  const change = {
    add: now.members.filter((member) => !old.has(member)),
    remove: before.members.filter((member) => !fresh.has(member)),
  };
  known.set(now, change);
  return change;
}

function sameText(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** The sidecar's end: takes deltas, and says what happens to a request. */
export class PodPolicyCopy {
  readonly #model = new ModelCopy();
  #ingress: EndpointPolicy | null = null;

  apply(delta: PodPolicyDelta): void {
    if (delta.ingress !== undefined) this.#ingress = delta.ingress;
    const { policies, profiles, ipSets, accountSets } = this.#model;
    applyTable(policies, withOwnFields(delta.policies), ({ id }) => id);
    applyTable(profiles, withOwnFields(delta.profiles), ({ id }) => id);
    applySets(ipSets, delta.ipSets);
    applySets(accountSets, delta.accountSets);
  }

  verdict(packet: Packet): Verdict {
    if (!this.#ingress) return { action: "deny", because: "the node's agent does not know this pod", hits: [] };
    const workload = { id: "", direction: "ingress" as const, ...this.#ingress };
    return hookVerdict(this.#model, { host: null, workload }, packet, { fromHost: false, toHost: false });
  }
}

function withOwnFields({ set, remove }: TableDelta<IngressRules>) {
  return { set: set.map(({ id, ingress }) => ({ id, ingress, egress: [], tier: "", order: null })), remove };
}
