/**
 * Chains that hold policy. One per policy and direction, shared by all who use it, under a name that stays while its rules change; chains of
 * tiers and of endpoints are named after what they hold, so pods with the same policies share them too.
 */
import type { DataplaneModel, Direction, Policy, Profile, Rule, TierPolicies } from "../../policy/model.ts";
import { hashed, setName } from "./names.ts";
import { ruleLines, setsOf } from "./rule-lines.ts";
import { MARK, type NftChain, type NftRule } from "./ruleset.ts";

/** Before services are translated an allow means something else: to skip the rest of host policy. */
export type Use = "decide" | "preDNAT";

/** Chains made while they are asked for, each once. */
export class PolicyChains {
  readonly chains = new Map<string, NftChain>();
  private readonly model: DataplaneModel;
  /** Chains that nft refused: they deny everything until their rules change. */
  private readonly closed: ReadonlySet<string>;

  constructor(model: DataplaneModel, closed: ReadonlySet<string>) {
    this.model = model;
    this.closed = closed;
  }

  /** Tiers, then profiles, then deny: a workload, and packets from or to the node itself. */
  deciding(direction: Direction, tiers: readonly TierPolicies[], profiles: readonly string[]): string {
    const named = tiers.map(({ name, endAction, policies }) => [name, endAction, policies]);
    return this.once(hashed("e", direction, named, profiles), () => [
      ...tiers.map((tier) => jump(this.tier("decide", direction, tier))),
      ...profiles.flatMap((id) => {
        const profile = this.model.profiles.get(id);
        return profile ? [jump(this.profile(profile, direction))] : [];
      }),
      { when: [], verdict: { is: "drop" }, comment: "no policy and no profile allows it" },
    ]);
  }

  /** Tiers, and without a decision on. */
  passing(use: Use, direction: Direction, tiers: readonly TierPolicies[]): string {
    const named = tiers.map(({ name, endAction, policies }) => [name, endAction, policies]);
    return this.once(hashed("f", use, direction, named), () =>
      tiers.map((tier) => jump(this.tier(use, direction, tier))),
    );
  }

  private tier(use: Use, direction: Direction, { name, endAction, policies }: TierPolicies): string {
    return this.once(hashed("t", use, direction, name, endAction, policies), () => [
      ...policies.flatMap((id) => {
        const policy = this.model.policies.get(id);
        if (!policy) return [];
        return [
          jump(this.policy(use, policy, direction)),
          {
            when: [{ on: "mark", bits: MARK.passed }],
            mark: { clear: MARK.passed },
            verdict: { is: "return" },
          } as const,
        ];
      }),
      ...(endAction === "deny"
        ? [{ when: [], verdict: { is: "drop" }, comment: `the end of tier ${name}` } as const]
        : []),
    ]);
  }

  private policy(use: Use, policy: Policy, direction: Direction): string {
    return this.ruled(policyChainName(use, policy.id, direction), policy, direction, ACTIONS[use]);
  }

  /** There is no tier after the profiles to pass to. */
  private profile(profile: Profile, direction: Direction): string {
    const actions = { ...ACTIONS.decide, pass: ACTIONS.decide.deny };
    return this.ruled(profileChainName(profile.id, direction), profile, direction, actions);
  }

  private ruled(name: string, owner: Policy | Profile, direction: Direction, actions: Actions): string {
    if (this.closed.has(name)) {
      const closed: NftRule = { when: [], verdict: { is: "drop" }, comment: `${owner.id} could not be written` };
      return this.once(name, () => [closed]);
    }
    if (!this.chains.has(name)) this.chains.set(name, renderedOnce(name, owner, direction, actions, this.model));
    return name;
  }

  private once(name: string, rules: () => NftRule[]): string {
    if (!this.chains.has(name)) this.chains.set(name, { name, rules: rules() });
    return name;
  }
}

export function policyChainName(use: Use, id: string, direction: Direction): string {
  return hashed("p", use, direction, id);
}

export function profileChainName(id: string, direction: Direction): string {
  return hashed("r", direction, id);
}

/** Whether a chain holds rules users wrote: the only ones nft could have a reason to refuse. */
export function isOfPolicy({ name }: NftChain): boolean {
  return /^[pr]-/.test(name);
}

type Actions = Record<"allow" | "deny" | "pass", Omit<NftRule, "when">>;

const DENY = { verdict: { is: "drop" } } as const;
const PASS = { mark: { set: MARK.passed }, verdict: { is: "return" } } as const;
const ACTIONS = {
  decide: { allow: { mark: { set: MARK.allowed }, verdict: { is: "accept" } }, deny: DENY, pass: PASS },
  preDNAT: { allow: { mark: { set: MARK.beforeTranslation }, verdict: { is: "accept" } }, deny: DENY, pass: PASS },
} as const satisfies Record<Use, Actions>;

/** Values of the model never change, so a policy is rendered once, and again only when a set it asks becomes one of another kind. */
const rendered = new WeakMap<Policy | Profile, Map<string, { sets: string; chain: NftChain }>>();

function renderedOnce(
  name: string,
  owner: Policy | Profile,
  direction: Direction,
  actions: Actions,
  model: DataplaneModel,
): NftChain {
  const chains = rendered.get(owner) ?? new Map<string, { sets: string; chain: NftChain }>();
  rendered.set(owner, chains);
  const sets = setNames(owner[direction], model);
  const known = chains.get(name);
  if (known?.sets === sets) return known.chain;
  const rules = owner[direction].flatMap((rule) => ruleLines(rule, model.ipSets).map((when) => line(rule, when)));
  const chain = { name, rules };
  chains.set(name, { sets, chain });
  return chain;

  function line(rule: Rule, when: NftRule["when"]): NftRule {
    const act = rule.action === "log" ? { log: rule.id } : actions[rule.action];
    return { when, ...act, comment: rule.id };
  }
}

function setNames(rules: readonly Rule[], { ipSets }: DataplaneModel): string {
  return rules
    .flatMap(setsOf)
    .map((id) => {
      const set = ipSets.get(id);
      return set ? `${setName(set, 4)} ${setName(set, 6)}` : `no ${id}`;
    })
    .join(" ");
}

function jump(chain: string): NftRule {
  return { when: [], verdict: { is: "jump", chain } };
}
