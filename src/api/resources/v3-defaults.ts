import type { Noun } from "../names.ts";
import type { KubeObject } from "../object.ts";
import { BUILT_IN_TIERS, isBuiltInTier } from "../validation/tier.ts";
import type { IPPool } from "./ip-pool.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import { tierOf } from "./policy-names.ts";
import type { STAGED_ACTIONS } from "./staged-policy.ts";
import type { Tier } from "./tier.ts";

/** A tier without an order comes where the default one is. */
const TIER_ORDER = 1_000_000;
const BLOCK_SIZE = { v4: 26, v6: 122 };

/** Fills what may be left out, as it will be understood; what is there stays. Changes the object; called before validation, so careful. */
export function setDefaults(noun: Noun, object: KubeObject): void {
  const spec = object["spec"];
  if (spec !== undefined && (typeof spec !== "object" || spec === null || Array.isArray(spec))) return;
  const given = (spec ?? {}) as Record<string, unknown>;
  const defaults = defaultsOf(noun, object.metadata.name ?? object.metadata.generateName ?? "", given);
  const missing = Object.entries(defaults).filter(([field]) => given[field] === undefined);
  if (missing.length > 0) object["spec"] = { ...given, ...Object.fromEntries(missing) };
}

function defaultsOf(noun: Noun, name: string, spec: Record<string, unknown>): Record<string, unknown> {
  switch (noun) {
    case "networkPolicy":
    case "globalNetworkPolicy":
      return policyDefaults(name, spec);
    case "stagedNetworkPolicy":
    case "stagedGlobalNetworkPolicy":
      return stagedDefaults(name, spec);
    case "stagedKubernetesNetworkPolicy":
      return { stagedAction: SET };
    case "tier":
      return tierDefaults(name);
    case "ipPool":
      return poolDefaults(spec as Partial<IPPool["spec"]>);
    default:
      return {};
  }
}

/** Directions as the rules say; a policy without egress rules decides ingress, as the orchestrator's own policies do. */
function policyDefaults(name: string, { ingress, egress }: Record<string, unknown>): Partial<NetworkPolicy["spec"]> {
  const has = (rules: unknown) => Array.isArray(rules) && rules.length > 0;
  const types = !has(egress) ? ["Ingress" as const] : has(ingress) ? BOTH : ["Egress" as const];
  return { tier: tierOf(name), types };
}

const SET: (typeof STAGED_ACTIONS)[number] = "Set";

/** What deletes a policy decides nothing. */
function stagedDefaults(name: string, spec: Record<string, unknown>): Record<string, unknown> {
  const { tier, types } = policyDefaults(name, spec);
  const { stagedAction = SET } = spec;
  return { stagedAction, tier, ...(stagedAction === "Delete" ? {} : { types }) };
}

const BOTH: NetworkPolicy["spec"]["types"] = ["Ingress", "Egress"];

function tierDefaults(name: string): Tier["spec"] {
  return isBuiltInTier(name) ? BUILT_IN_TIERS[name] : { order: TIER_ORDER, defaultAction: "Deny" };
}

function poolDefaults({ cidr, namespaceSelector }: Partial<IPPool["spec"]>): Partial<IPPool["spec"]> {
  const selects = typeof namespaceSelector === "string" && !["", "all()"].includes(namespaceSelector.trim());
  return {
    blockSize: String(cidr).includes(":") ? BLOCK_SIZE.v6 : BLOCK_SIZE.v4,
    vxlanMode: "Never",
    ipipMode: "Never",
    nodeSelector: "all()",
    // Tunnels belong to nodes, and nodes to no namespace.
    allowedUses: selects ? ["Workload"] : ["Workload", "Tunnel"],
    assignmentMode: "Automatic",
  };
}
