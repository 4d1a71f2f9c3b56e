import type { DataplaneModel, Direction, FailsafePort, Rule, RuleMatch, TierPolicies } from "../../../calc/model.ts";
import { type Criterion, enforceable, type HandledCriteria } from "../../../calc/policy/criteria.ts";
import type { HookPolicy, HostPart, WorkloadPart } from "../../../calc/policy/hook-policy.ts";
import { WORK_FLAG } from "../../../gen/bpf/layout.gen.ts";

/** What becomes of a packet: a verdict, or on with the group of that number. */
export type Target = "allow" | "deny" | number;

/**
 * A policy as one list, in the order it is asked. Groups are places that can be gone to: a tier, the profiles, a fork. A packet that is
 * not decided falls to the next item, and the last item decides.
 */
export type PolicyItem =
  /** With `unless`, packets that have none of these flags go there instead. */
  | { kind: "group"; index: number; unless?: { flags: number; target: number } }
  | { kind: "rule"; match: RuleMatch; original: boolean; hit: string | undefined; then: Target | "next item" }
  | { kind: "end"; hit: string | undefined; then: Target };

/** What the node always does, in addition to its policies. */
export interface ListOptions {
  failsafe: { inbound: FailsafePort[]; outbound: FailsafePort[] };
  endpointToHost: "accept" | "drop" | "return";
}

/** What `match-code.ts` has instructions for. */
const CRITERIA: HandledCriteria = {
  ...{ ipVersion: true, protocol: true, notProtocol: true, icmp: true, notIcmp: true },
  ...{ srcNets: true, notSrcNets: true, dstNets: true, notDstNets: true },
  ...{ srcPorts: true, notSrcPorts: true, dstPorts: true, notDstPorts: true },
  ...{ srcSets: true, notSrcSets: true, dstSets: true, notDstSets: true },
  ...{ srcNamedPortSets: true, notSrcNamedPortSets: true, dstNamedPortSets: true, notDstNamedPortSets: true },
};
const CRITERION_NAMES = Object.keys(CRITERIA) as Criterion[];

type Rules = Pick<DataplaneModel, "policies" | "profiles">;

/** The list of all policy of one interface in one direction. Equivalent to `hookVerdict` in src/calc; the differential test compares them. */
export function policyItems(rules: Rules, hook: HookPolicy, options: ListOptions): PolicyItem[] {
  const list = new ListBuilder(rules);
  const workloadStart = list.reserve();
  if (hook.host) addHost(list, hook.host, options, workloadStart);
  list.group(workloadStart);
  if (!hook.workload) list.end("allow");
  else addWorkload(list, hook.workload, options);
  return reachable(list.items);
}

/** Where an item may send a packet, other than to the next item. */
export function targetsOf(item: PolicyItem): Target[] {
  if (item.kind === "group") return item.unless ? [item.unless.target] : [];
  return item.then === "next item" ? [] : [item.then];
}

/** Whether a packet can come past the item. */
export function fallsThrough(item: PolicyItem): boolean {
  if (item.kind !== "rule") return item.kind === "group";
  return item.then === "next item" || CRITERION_NAMES.some((criterion) => item.match[criterion] !== undefined);
}

/** The kernel refuses programs with code nothing leads to. All ways lead forward, so one look is enough. */
function reachable(items: PolicyItem[]): PolicyItem[] {
  const wanted = new Set<Target>();
  let alive = true;
  return items.filter((item) => {
    if (item.kind === "group") alive ||= wanted.has(item.index);
    if (!alive) return false;
    for (const target of targetsOf(item)) wanted.add(target);
    alive = fallsThrough(item);
    return true;
  });
}

function addHost(list: ListBuilder, part: HostPart, { failsafe }: ListOptions, after: number): void {
  const { direction } = part;
  const inbound = direction === "ingress";
  list.fork(inbound ? WORK_FLAG.WORK_TO_HOST : WORK_FLAG.WORK_FROM_HOST, (): void => {
    for (const port of inbound ? failsafe.inbound : failsafe.outbound) list.rule(failsafeMatch(port, inbound), after);
  });
  list.tiers(part.preDNAT, direction, { allow: after, original: true });
  const forwarded = list.reserve();
  list.group(list.reserve(), { flags: WORK_FLAG.WORK_FROM_HOST | WORK_FLAG.WORK_TO_HOST, target: forwarded });
  if (part.normal === null) list.end(after);
  else {
    list.tiers(part.normal, direction, { allow: after });
    list.profiles(part.profiles, direction, after);
  }
  list.group(forwarded);
  list.tiers(part.forward, direction, { allow: after });
  list.end(after);
}

function addWorkload(list: ListBuilder, part: WorkloadPart, { endpointToHost }: ListOptions): void {
  const mayBeClosed = part.direction === "egress" && endpointToHost === "drop";
  const allow = mayBeClosed ? list.reserve() : "allow";
  list.tiers(part.tiers, part.direction, { allow });
  list.profiles(part.profiles, part.direction, allow);
  if (allow === "allow") return;
  list.group(allow);
  list.fork(WORK_FLAG.WORK_TO_HOST, (): void => list.end("deny"));
  list.end("allow");
}

function failsafeMatch({ protocol, port, net }: FailsafePort, inbound: boolean): RuleMatch {
  const remote = net === null ? {} : inbound ? { srcNets: [net] } : { dstNets: [net] };
  return { protocol, dstPorts: [[port, port]], ...remote };
}

class ListBuilder {
  readonly items: PolicyItem[] = [];
  private readonly model: Rules;
  private groups = 0;

  constructor(model: Rules) {
    this.model = model;
  }

  /** A number for a group that comes later. */
  reserve(): number {
    return this.groups++;
  }

  group(index: number, unless?: { flags: number; target: number }): void {
    this.items.push(unless ? { kind: "group", index, unless } : { kind: "group", index });
  }

  /** What is added inside is only for packets with one of the flags. */
  fork(flags: number, add: () => void): void {
    const around = this.reserve();
    this.group(this.reserve(), { flags, target: around });
    add();
    this.group(around);
  }

  end(then: Target, hit?: string): void {
    this.items.push({ kind: "end", hit, then });
  }

  rule(match: RuleMatch, then: Target | "next item", hit?: string, original = false): void {
    this.items.push({ kind: "rule", match, original, hit, then });
  }

  /** Undecided after the last tier: on with the next item. */
  tiers(tiers: TierPolicies[], direction: Direction, { allow, original }: { allow: Target; original?: boolean }): void {
    for (const tier of tiers) {
      const next = this.reserve();
      for (const id of tier.policies) {
        const rules = rulesOf(this.model.policies.get(id)?.[direction]);
        for (const rule of rules) this.rule(rule, thenOf(rule, { allow, pass: next }), rule.id, original);
      }
      this.end(tier.endAction === "deny" ? "deny" : next, `${tier.name};end`);
      this.group(next);
    }
  }

  profiles(ids: string[], direction: Direction, allow: Target): void {
    for (const id of ids) {
      const rules = rulesOf(this.model.profiles.get(id)?.[direction]);
      for (const rule of rules) this.rule(rule, thenOf(rule, { allow, pass: "deny" }), rule.id);
    }
    this.end("deny", ";no-profile");
  }
}

function rulesOf(rules: readonly Rule[] = []): Rule[] {
  return rules.map((rule) => enforceable(rule, CRITERIA));
}

function thenOf({ action }: Rule, to: { allow: Target; pass: Target }): Target | "next item" {
  if (action === "log") return "next item";
  return action === "deny" ? "deny" : to[action];
}
