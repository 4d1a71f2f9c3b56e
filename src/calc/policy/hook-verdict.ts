import type { DataplaneModel, Direction, FailsafePort, Packet, PacketRequest, Rule, TierPolicies } from "../model.ts";
import { NetTable } from "../nets.ts";
import { enforceable } from "./criteria.ts";
import type { HookPolicy, HostPart, WorkloadPart } from "./hook-policy.ts";
import { matchesRequest } from "./match-request.ts";
import { MATCHED_CRITERIA, matchesRule, type ReadPacket, readPacket } from "./match-rule.ts";

export interface Verdict {
  action: "allow" | "deny";
  /** What decided last, for people: a rule, the end of a tier, the end of the profiles, or a rule of the service itself. */
  because: string;
  /** Ids of the rules that matched, in order; the end of a tier as `TIER;end`, of the profiles as `;no-profile`. */
  hits: string[];
}

/** As a hit: no policy and no profile decided. */
export const NO_PROFILE = ";no-profile";

/** As a hit: no policy of the tier decided. */
export function endOf(tier: string): string {
  return `${tier};end`;
}

/** Whether the packet itself is from or for this node, and not only forwarded. */
export interface HostRole {
  fromHost: boolean;
  toHost: boolean;
}

/** One tier that was asked, or the profiles: for who explains a verdict. */
export interface AskedStep {
  of: "workload" | "host";
  direction: Direction;
  /** Undefined: the profiles. */
  tier: string | undefined;
  /** Of policies, or of profiles; in the order they were asked. */
  owners: readonly string[];
  result: "allow" | "deny" | "pass";
  /** The rule that decided; undefined: none did, and it is the end's result. */
  rule: string | undefined;
  /** With the destination that the step is about: before or after a Service was translated. */
  packet: ReadPacket;
}

/** What one interface decides of one packet. `asked` gets each step. */
export function hookVerdict(
  model: DataplaneModel,
  hook: HookPolicy,
  packet: Packet,
  role: HostRole,
  asked?: (step: AskedStep) => void,
): Verdict {
  const hits: string[] = [];
  const read = readPacket(packet);
  const original = readPacket(packet, true);
  if (!read || !original) return { action: "deny", because: "its addresses cannot be read", hits };
  const judging = { model, read, original, request: packet.request, hits };
  const host = hook.host && hostVerdict({ ...judging, asked: reportAs("host", asked) }, hook.host, role);
  if (host?.action === "deny") return { ...host, hits };
  const own = hook.workload && workloadVerdict({ ...judging, asked: reportAs("workload", asked) }, hook.workload);
  return { ...(own ?? host ?? allowed("the interface has no policy")), hits };
}

interface Evaluation {
  model: DataplaneModel;
  read: ReadPacket;
  original: ReadPacket;
  request: PacketRequest | undefined;
  hits: string[];
  asked: ((step: Omit<AskedStep, "of">) => void) | undefined;
}

function reportAs(whose: AskedStep["of"], asked: ((step: AskedStep) => void) | undefined): Evaluation["asked"] {
  return asked && ((step) => asked({ of: whose, ...step }));
}

type Decision = Omit<Verdict, "hits">;

function hostVerdict(judging: Evaluation, part: HostPart, role: HostRole): Decision {
  if (isFailsafe(judging, part.direction, role)) return allowed("a failsafe port");
  const before = runTiers(judging, part.preDNAT, part.direction, judging.original);
  if (before) return before;
  if (!role.fromHost && !role.toHost) {
    return runTiers(judging, part.forward, part.direction) ?? allowed("no policy for forwarded packets decides");
  }
  if (part.normal === null) return allowed("host policy does not apply between a node and its pods");
  return runTiers(judging, part.normal, part.direction) ?? runProfiles(judging, part.profiles, part.direction);
}

function workloadVerdict(judging: Evaluation, part: WorkloadPart): Decision {
  return runTiers(judging, part.tiers, part.direction) ?? runProfiles(judging, part.profiles, part.direction);
}

/** Undefined: every tier passed. */
function runTiers(
  judging: Evaluation,
  tiers: TierPolicies[],
  direction: Direction,
  packet = judging.read,
): Decision | undefined {
  for (const tier of tiers) {
    const rules = rulesOf(judging.model, tier, direction);
    const decided = firstMatch(judging, rules, packet);
    judging.asked?.({
      ...{ direction, tier: tier.name, owners: tier.policies, packet },
      ...{ result: decided?.action ?? tier.endAction, rule: decided?.id },
    });
    if (decided && decided.action !== "pass") return { action: decided.action, because: `rule ${decided.id}` };
    if (decided) continue;
    judging.hits.push(endOf(tier.name));
    if (tier.endAction === "deny") return { action: "deny", because: `the end of tier ${tier.name}` };
  }
  return undefined;
}

function* rulesOf(model: DataplaneModel, tier: TierPolicies, direction: Direction): Generator<Rule> {
  for (const id of tier.policies) yield* model.policies.get(id)?.[direction] ?? [];
}

function runProfiles(judging: Evaluation, ids: string[], direction: Direction): Decision {
  const step = { direction, tier: undefined, owners: ids, packet: judging.read };
  for (const id of ids) {
    const decided = firstMatch(judging, judging.model.profiles.get(id)?.[direction] ?? [], judging.read);
    if (!decided) continue;
    const action = decided.action === "allow" ? "allow" : "deny";
    judging.asked?.({ ...step, result: action, rule: decided.id });
    return { action, because: `rule ${decided.id}` };
  }
  judging.asked?.({ ...step, result: "deny", rule: undefined });
  judging.hits.push(NO_PROFILE);
  return { action: "deny", because: "no policy and no profile allows it" };
}

function firstMatch(
  { model, hits, request }: Evaluation,
  rules: Iterable<Rule>,
  packet: ReadPacket,
): { id: string; action: "allow" | "deny" | "pass" } | undefined {
  for (const given of rules) {
    const rule = enforceable(given, MATCHED_CRITERIA);
    if (!matchesRule(rule, packet, model.ipSets)) continue;
    if (request && !matchesRequest(rule, request, model.accountSets)) continue;
    hits.push(rule.id);
    if (rule.action !== "log") return { id: rule.id, action: rule.action };
  }
  return undefined;
}

/** Ports host policy never closes: by the packet's own destination, before or after translation alike. */
function isFailsafe({ model, read }: Evaluation, direction: Direction, role: HostRole): boolean {
  const { inbound, outbound } = model.settings.failsafe;
  if (direction === "ingress") return role.toHost && inbound.some((port) => opens(port, read, read.source.address));
  return role.fromHost && outbound.some((port) => opens(port, read, read.destination.address));
}

function opens(
  { protocol, port, net }: FailsafePort,
  packet: ReadPacket,
  remote: ReadPacket["source"]["address"],
): boolean {
  if (protocol !== packet.protocol || port !== packet.destination.port) return false;
  if (net === null) return true;
  const table = new NetTable();
  table.add(net, true);
  return table.find(remote) !== undefined;
}

export function allowed(because: string): Verdict {
  return { action: "allow", because, hits: [] };
}
