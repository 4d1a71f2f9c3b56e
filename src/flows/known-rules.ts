import { vendorNames } from "../api/names.ts";
import type { KubeObject, ResourceKind } from "../api/object.ts";
import { globalNetworkPolicy, networkPolicy } from "../api/resources/network-policy.ts";
import { placesOf } from "../api/resources/resource.ts";
import { stagedKinds } from "../calc/policy/staged-policy.ts";
import type { Client } from "../cluster/client.ts";
import { isNotFound } from "../cluster/failures.ts";
import { NETWORK_POLICIES } from "../cluster/kinds.ts";
import type { Clock } from "../kit/clock.ts";
import type { KnownRule } from "./store/rankings.ts";

/** Asked for statistics only, and by people. */
const KEPT_MS = 10_000;
const DEFAULT_TIER = "default";

interface PolicySpec {
  tier?: string;
  stagedAction?: string;
  ingress?: readonly unknown[];
  egress?: readonly unknown[];
}

/** The rules there are, in the words agents use for those that were hit: what is in no flow is listed with them. */
export function knownRules(client: Client, clock: Clock): (by: "policy" | "rule") => Promise<KnownRule[]> {
  let kept: { at: number; rules: Promise<Policies> } | undefined;
  return async (by) => {
    if (!kept || clock.now() - kept.at > KEPT_MS) {
      const rules = listPolicies(client);
      kept = { at: clock.now(), rules };
      rules.catch(() => {
        kept = undefined;
      });
    }
    return (await kept.rules).flatMap(({ policy, spec }) => (by === "policy" ? [policy] : rulesOf(policy, spec)));
  };
}

type Policy = Pick<KnownRule, "kind" | "tier" | "namespace" | "name" | "staged">;
type Policies = { policy: Policy; spec: PolicySpec }[];

/** Those that would be something if they were enforced. */
const EFFECTIVE: readonly unknown[] = [undefined, "Set", "Learn"];

async function listPolicies(client: Client): Promise<Policies> {
  const staged = stagedKinds(vendorNames).map(async ({ staged: resource }) => {
    const items = await listKnown(client, resource);
    return items
      .filter(({ spec }) => EFFECTIVE.includes(spec?.stagedAction))
      .map((object) => policyOf(resource.kind, object, { staged: true }));
  });
  const kinds: readonly [string, ResourceKind][] = [
    ["NetworkPolicy", placesOf(networkPolicy, vendorNames).stored],
    ["GlobalNetworkPolicy", placesOf(globalNetworkPolicy, vendorNames).stored],
    ["KubernetesNetworkPolicy", NETWORK_POLICIES],
  ];
  const lists = kinds.map(async ([kind, resource]) =>
    (await client.list<KubeObject>(resource)).items.map((object) => policyOf(kind, object)),
  );
  return (await Promise.all([...lists, ...staged])).flat();
}

type PolicyObject = KubeObject & { spec?: PolicySpec };

async function listKnown(client: Client, resource: ResourceKind): Promise<PolicyObject[]> {
  try {
    return (await client.list<PolicyObject>(resource)).items;
  } catch (error) {
    // Of a cluster that does not have the kind yet.
    if (isNotFound(error)) return [];
    throw error;
  }
}

function policyOf(
  kind: string,
  { metadata, spec = {} }: PolicyObject,
  staged: Pick<KnownRule, "staged"> = {},
): Policies[number] {
  const { name, namespace = "" } = metadata;
  return { policy: { kind, tier: spec.tier || DEFAULT_TIER, namespace, name, ...staged }, spec };
}

function rulesOf(policy: Policy, { ingress = [], egress = [] }: PolicySpec): KnownRule[] {
  return [
    ...ingress.map((_, rule): KnownRule => ({ ...policy, direction: "Ingress", rule })),
    ...egress.map((_, rule): KnownRule => ({ ...policy, direction: "Egress", rule })),
  ];
}
