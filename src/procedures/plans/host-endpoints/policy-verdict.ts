import type { KubeObject } from "../../../api/object.ts";
import type { GlobalNetworkPolicy } from "../../../api/resources/network-policy.ts";
import { tierOf } from "../../../api/resources/policy-names.ts";
import type { PolicyRule } from "../../../api/resources/policy-rule.ts";
import { hasGlobal, matchesExpression, parseSelectorExpression } from "../../../api/schema/selector-expression.ts";
import { BUILT_IN_TIERS, isBuiltInTier } from "../../../api/validation/tier.ts";
import { type HostPacket, matchesRule } from "./rule-match.ts";

export type Direction = "Ingress" | "Egress";
type Labels = Readonly<Record<string, string>>;

/** When a policy acts on a node's traffic: the ordinary ones last, and those only where the packet ends or begins at the node, unless it forwards too. */
export type Moment = "untracked" | "preDNAT" | "normal";

/** A global policy, read once. Order and selector are as they are understood, not as they are written. */
export interface ReadPolicy {
  /** As people say it: without the tier in front. */
  name: string;
  tier: string;
  order: number;
  selector: string;
  moment: Moment;
  forwards: boolean;
  directions: readonly Direction[];
  rules: Readonly<Record<Direction, readonly PolicyRule[]>>;
  /** Whether it is for an endpoint of a node with these labels. */
  selects(labels: Labels): boolean;
}

export interface ReadTier {
  name: string;
  order: number;
  defaultAction: "Deny" | "Pass";
  policies: readonly ReadPolicy[];
}

/** Tiers in the order they are asked, each with its policies in theirs. */
export function readTiers(tiers: readonly KubeObject[], policies: readonly KubeObject[]): ReadTier[] {
  const read = policies.map((policy) => readPolicy(policy as unknown as GlobalNetworkPolicy));
  const names = new Set([...tiers.map(({ metadata }) => metadata.name), ...read.map(({ tier }) => tier)]);
  return [...names]
    .map((name) => ({
      name,
      ...tierSpec(name, tiers),
      policies: read.filter(({ tier }) => tier === name).sort(byOrder),
    }))
    .sort((a, b) => a.order - b.order || (a.name < b.name ? -1 : 1));
}

function tierSpec(name: string, tiers: readonly KubeObject[]): Pick<ReadTier, "order" | "defaultAction"> {
  const written = (tiers.find(({ metadata }) => metadata.name === name)?.["spec"] ?? {}) as Partial<ReadTier>;
  const builtIn = isBuiltInTier(name)
    ? BUILT_IN_TIERS[name]
    : { order: Number.POSITIVE_INFINITY, defaultAction: "Deny" as const };
  return { order: written.order ?? builtIn.order, defaultAction: written.defaultAction ?? builtIn.defaultAction };
}

function byOrder(a: ReadPolicy, b: ReadPolicy): number {
  const difference = a.order - b.order;
  return Number.isNaN(difference) || difference === 0 ? (a.name < b.name ? -1 : 1) : difference;
}

function readPolicy({ metadata, spec = {} }: GlobalNetworkPolicy): ReadPolicy {
  const tier = spec.tier ?? tierOf(metadata.name);
  const prefix = `${tier}.`;
  return {
    name: metadata.name.startsWith(prefix) ? metadata.name.slice(prefix.length) : metadata.name,
    tier,
    order: spec.order ?? Number.POSITIVE_INFINITY,
    selector: spec.selector?.trim() || "all()",
    moment: spec.doNotTrack ? "untracked" : spec.preDNAT ? "preDNAT" : "normal",
    forwards: spec.applyOnForward === true,
    directions: directionsOf(spec),
    rules: { Ingress: spec.ingress ?? [], Egress: spec.egress ?? [] },
    selects: selects(spec),
  };
}

/** As the v3 API fills it in: a policy without egress rules decides ingress. */
function directionsOf({ types, ingress = [], egress = [] }: GlobalNetworkPolicy["spec"]): readonly Direction[] {
  if (types !== undefined && types.length > 0) return types;
  if (egress.length === 0) return ["Ingress"];
  return ingress.length > 0 ? ["Ingress", "Egress"] : ["Egress"];
}

/** An endpoint of a node has no namespace and no service account: a policy for those of pods is not for it. */
function selects(spec: GlobalNetworkPolicy["spec"]): (labels: Labels) => boolean {
  if (spec.serviceAccountSelector?.trim()) return () => false;
  const namespaces = spec.namespaceSelector?.trim();
  if (namespaces) {
    const parsed = parseSelectorExpression(namespaces);
    if ("problem" in parsed || !hasGlobal(parsed.expression)) return () => false;
  }
  const parsed = parseSelectorExpression(spec.selector ?? "");
  // What cannot be read selects nothing in any data plane.
  return "problem" in parsed ? () => false : (labels) => matchesExpression(parsed.expression, labels);
}

export type Verdict = { allowed: true } | { allowed: false; by: string };

const ALLOWED: Verdict = { allowed: true };

/**
 * The verdict for a packet at an endpoint whose profile allows everything. If a rule depends on something that is unknown here, the worse
 * is assumed.
 */
export function verdictOf(tiers: readonly ReadTier[], labels: Labels, packet: HostPacket): Verdict {
  return early(tiers, labels, packet) ?? ordinary(tiers, labels, packet);
}

/** Policies before connection tracking or translation close what they name, and say nothing of the rest. */
function early(tiers: readonly ReadTier[], labels: Labels, packet: HostPacket): Verdict | undefined {
  for (const policy of tiers.flatMap(({ policies }) => policies)) {
    if (policy.moment === "normal" || !applies(policy, labels, packet.direction)) continue;
    const action = firstAction(policy, packet);
    if (action === "Deny") return { allowed: false, by: `policy ${policy.name}` };
    if (action === "Allow" && policy.moment === "untracked") return ALLOWED;
  }
  return undefined;
}

function ordinary(tiers: readonly ReadTier[], labels: Labels, packet: HostPacket): Verdict {
  for (const tier of tiers) {
    const policies = tier.policies.filter((one) => one.moment === "normal" && applies(one, labels, packet.direction));
    if (policies.length === 0) continue;
    const decided = policies
      .map((policy) => ({ policy, action: firstAction(policy, packet) }))
      .find(({ action }) => action !== undefined);
    if (decided?.action === "Allow") return ALLOWED;
    if (decided?.action === "Deny") return { allowed: false, by: `policy ${decided.policy.name}` };
    if (decided === undefined && tier.defaultAction === "Deny") {
      return { allowed: false, by: `${policies.map(({ name }) => name).join(", ")} (no rule lets it through)` };
    }
  }
  return ALLOWED;
}

export function applies(policy: ReadPolicy, labels: Labels, direction: Direction): boolean {
  return policy.directions.includes(direction) && policy.selects(labels);
}

function firstAction(policy: ReadPolicy, packet: HostPacket): "Allow" | "Deny" | "Pass" | undefined {
  for (const rule of policy.rules[packet.direction]) {
    if (rule.action === "Log") continue;
    const match = matchesRule(rule, packet);
    if (match === "yes" || (match === "unknown" && rule.action === "Deny")) return rule.action;
  }
  return undefined;
}
