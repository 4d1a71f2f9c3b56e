import { FLOW_LOGS_API, type Names, type Noun } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { clusterRole, groupBinding, READ, type Rule, rule } from "../render/rbac.ts";

const CHANGE = ["create", "update", "patch", "delete", "deletecollection"] as const;
const DEFAULT_TIER = "default";
const TIERED: readonly Noun[] = ["networkPolicy", "stagedNetworkPolicy"];
const POLICIES: readonly Noun[] = [...TIERED, "stagedKubernetesNetworkPolicy"];
const GLOBAL_POLICIES: readonly Noun[] = ["globalNetworkPolicy", "stagedGlobalNetworkPolicy"];

const aggregateTo = (...roles: ("view" | "edit" | "admin")[]): Record<string, string> =>
  Object.fromEntries(roles.map((name) => [`rbac.authorization.k8s.io/aggregate-to-${name}`, "true"]));

/**
 * What people may do with our kinds, as parts of Kubernetes' own `view`, `edit` and `admin`. They are published with the operator and not
 * rendered by it: a subject can grant only rights it has, and the operator needs none of these.
 *
 * A user with `edit` in one namespace is not trusted. So nothing here:
 * - names the stored group, which knows neither tiers nor the rules of the v3 API;
 * - gives rights in a tier other than `default`;
 * - writes what is not in a namespace;
 * - writes network sets: they name any address, and policies of other namespaces select them by labels. `vendor-network-set-edit` is bound where
 *   a team is trusted with that.
 */
export function userRoles(names: Names): KubeObject[] {
  return [
    clusterRole("vendor-aggregate-to-view", viewRules(names), aggregateTo("view")),
    clusterRole("vendor-aggregate-to-edit", editRules(names), aggregateTo("edit", "admin")),
    clusterRole("vendor-network-set-edit", [served(names, ["networkSet"], [...READ, ...CHANGE])]),
    ...defaultTier(names),
  ];
}

/** What is not in a namespace is seen only by users whose `view` is bound in the whole cluster. */
function viewRules(names: Names): Rule[] {
  return [
    served(names, [...POLICIES, "networkSet"], READ),
    inDefaultTier(names, TIERED, READ),
    served(names, [...GLOBAL_POLICIES, "globalNetworkSet", "ipPool", "clusterInformation"], READ),
    inDefaultTier(names, GLOBAL_POLICIES, READ),
    rule(
      names.groups.operator.group,
      (["installation", "apiServer", "flowLogs", "flowUI", "status"] as const).map((noun) => names.kinds[noun].plural),
      READ,
    ),
    rule(FLOW_LOGS_API.group, ["flows"], READ),
    rule(FLOW_LOGS_API.group, ["flows/explain"], ["get"]),
    // Made of the same flows. Servers of aggregated APIs are asked only after the main one, which knows each by its own name.
    rule(FLOW_LOGS_API.group, ["hints", "proposals", "statistics", "timeline", "top"], ["list"]),
  ];
}

function editRules(names: Names): Rule[] {
  return [
    served(names, POLICIES, CHANGE),
    inDefaultTier(names, TIERED, CHANGE),
    // Of what its user could write: each object is asked about.
    rule(FLOW_LOGS_API.group, ["previews"], ["create"]),
  ];
}

/**
 * A tier is not in a namespace, so a role bound in one cannot give `get` on it; without it no policy of the tier can be seen or written. Every
 * user may read this one tier. It opens nothing: the rights to its policies are those of the roles above.
 */
function defaultTier(names: Names): KubeObject[] {
  const name = "vendor-default-tier";
  const rules = [rule(names.groups.served.group, [names.kinds.tier.plural], ["get"], [DEFAULT_TIER])];
  return [clusterRole(name, rules), groupBinding(name, name, "system:authenticated")];
}

function served({ groups, kinds }: Names, nouns: readonly Noun[], verbs: readonly string[]): Rule {
  return rule(
    groups.served.group,
    nouns.map((noun) => kinds[noun].plural),
    verbs,
  );
}

/** The rights to policies are asked for by tier, under this name (see `aggregated/tier-access.ts`). */
function inDefaultTier({ groups, kinds }: Names, nouns: readonly Noun[], verbs: readonly string[]): Rule {
  return rule(
    groups.served.group,
    nouns.map((noun) => `tier.${kinds[noun].plural}`),
    verbs,
    [`${DEFAULT_TIER}.*`],
  );
}
