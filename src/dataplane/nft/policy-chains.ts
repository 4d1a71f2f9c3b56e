/**
 * Chains that hold policy. One per policy and direction, shared by all who use it, under a name that stays while its rules change; chains of
 * tiers and of endpoints are named after what they hold, so pods with the same policies share them too.
 */
import type { DataplaneModel, Direction, Policy, Profile, Rule, TierPolicies } from "../../calc/model.ts";
import { enforceable } from "../../calc/policy/criteria.ts";
import { endOf, NO_PROFILE } from "../../calc/policy/hook-verdict.ts";
import { hashed, setName } from "./names.ts";
import { CRITERIA, ruleLines, setsOf } from "./rule-lines.ts";
import { denialOf, MARK, type NftChain, type NftRule } from "./ruleset.ts";

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
    const jumps = [
      ...tiers.map((tier) => this.tier("decide", direction, tier)),
      ...profiles.flatMap((id) => {
        const profile = this.model.profiles.get(id);
        return profile ? [this.profile(profile, direction)] : [];
      }),
    ];
    return this.add(cached(tiers, `${direction} ${jumps.join(" ")}`, () => decidingChain(jumps)));
  }

  /** Tiers, and without a decision on. */
  passing(use: Use, direction: Direction, tiers: readonly TierPolicies[]): string {
    const jumps = tiers.map((tier) => this.tier(use, direction, tier));
    return this.add(
      cached(tiers, `pass ${use} ${direction}`, () => ({ name: hashed("f", jumps), rules: jumps.map(jump) })),
    );
  }

  private tier(use: Use, direction: Direction, tier: TierPolicies): string {
    const policies = tier.policies.flatMap((id) => {
      const policy = this.model.policies.get(id);
      return policy ? [this.policy(use, policy, direction)] : [];
    });
    return this.add(cached(tier, `${use} ${direction}`, () => tierChain(tier, policies)));
  }

  private policy(use: Use, policy: Policy, direction: Direction): string {
    return this.ruled(policy, direction, ACTIONS[use], () => policyChainName(use, policy.id, direction), use);
  }

  /** There is no tier after the profiles to pass to. */
  private profile(profile: Profile, direction: Direction): string {
    return this.ruled(profile, direction, PROFILE_ACTIONS, () => profileChainName(profile.id, direction), "profile");
  }

  private ruled(
    owner: Policy | Profile,
    direction: Direction,
    actions: Actions,
    nameOf: () => string,
    use: string,
  ): string {
    const name = cached(owner, `name ${use} ${direction}`, () => ({ name: nameOf(), rules: [] })).name;
    if (this.chains.has(name)) return name;
    if (this.closed.has(name)) {
      return this.add({
        name,
        rules: [{ ...DENY, when: [], denial: denialOf("policy_missing"), comment: `${owner.id} could not be written` }],
      });
    }
    // A rule is written again when a set it asks becomes one of another kind.
    const key = `${use} ${direction} ${setNames(owner[direction], this.model)}`;
    return this.add(cached(owner, key, () => ruledChain(name, owner[direction], actions, this.model)));
  }

  private add(chain: NftChain): string {
    this.chains.set(chain.name, chain);
    return chain.name;
  }
}

/** Values of the model never change, so what was made of one is good for as long as it lives: a change costs what it touches. */
const made = new WeakMap<object, Map<string, NftChain>>();

function cached(owner: object, key: string, make: () => NftChain): NftChain {
  const chains = made.get(owner) ?? new Map<string, NftChain>();
  made.set(owner, chains);
  const chain = chains.get(key) ?? make();
  chains.set(key, chain);
  return chain;
}

function decidingChain(jumps: readonly string[]): NftChain {
  const end: NftRule = { ...DENY, when: [], denial: NO_PROFILE, comment: "no policy and no profile allows it" };
  return { name: hashed("e", jumps), rules: [...jumps.map(jump), end] };
}

function tierChain({ name, endAction }: TierPolicies, policies: readonly string[]): NftChain {
  const passed: NftRule = {
    when: [{ on: "mark", bits: MARK.passed }],
    mark: { clear: MARK.passed },
    verdict: { is: "return" },
  };
  const end: NftRule[] =
    endAction === "deny" ? [{ ...DENY, when: [], denial: endOf(name), comment: `the end of tier ${name}` }] : [];
  const rules = [...policies.flatMap((policy) => [jump(policy), passed]), ...end];
  return { name: hashed("t", name, endAction, policies), rules };
}

function ruledChain(name: string, rules: readonly Rule[], actions: Actions, model: DataplaneModel): NftChain {
  const act = (rule: Rule) => (rule.action === "log" ? { log: rule.id } : actions[rule.action]);
  const known = rules.map((rule) => enforceable(rule, CRITERIA));
  const lines = known.flatMap((rule) =>
    ruleLines(rule, model.ipSets).map((when): NftRule => {
      const acts = act(rule);
      const denies = "verdict" in acts && acts.verdict?.is === "drop";
      return { when, ...acts, comment: rule.id, ...(denies ? { denial: rule.id } : {}) };
    }),
  );
  return { name, rules: lines };
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
const PROFILE_ACTIONS: Actions = { ...ACTIONS.decide, pass: DENY };

/** Ids of the sets each list of rules asks. */
const asked = new WeakMap<readonly Rule[], string[]>();

function setNames(rules: readonly Rule[], { ipSets }: DataplaneModel): string {
  const ids = asked.get(rules) ?? [...new Set(rules.flatMap(setsOf))];
  asked.set(rules, ids);
  return ids
    .map((id) => {
      const set = ipSets.get(id);
      return set ? `${setName(set, 4)} ${setName(set, 6)}` : `no ${id}`;
    })
    .join(" ");
}

function jump(chain: string): NftRule {
  return { when: [], verdict: { is: "jump", chain } };
}
