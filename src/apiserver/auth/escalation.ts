import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../../api/object.ts";
import type { Change } from "../call.ts";
import { forbidden } from "../status-errors.ts";
import { coversPath, coversResource, has, type PolicyRule } from "./policy-rule.ts";
import type { Authorizer } from "./rbac.ts";

interface Role extends KubeObject {
  rules?: PolicyRule[] | null;
  aggregationRule?: object;
}

interface Binding extends KubeObject {
  roleRef: { kind: string; name: string };
}

/** How a role that is bound is found. */
export type RulesOfRole = (ref: Binding["roleRef"], namespace: string) => readonly PolicyRule[] | undefined;

/** A user who chooses the roles an aggregated one will have could grant everything. */
const EVERYTHING: readonly PolicyRule[] = [
  { apiGroups: ["*"], resources: ["*"], verbs: ["*"] },
  { nonResourceURLs: ["*"], verbs: ["*"] },
];

/**
 * No user grants more than they have: neither by writing a role nor by binding one. Those who may `escalate` a role
 * or `bind` it are excepted. Throws.
 */
export function refuseEscalation(change: Change, authorizer: Authorizer, rulesOfRole: RulesOfRole): void {
  const { kind, object, old, user } = change;
  const namespace = object.metadata.namespace ?? "";
  const may = (verb: string, plural: string, name: string) =>
    authorizer.authorize(user, {
      resource: true,
      verb,
      group: kind.group,
      plural,
      subresource: "",
      namespace,
      name,
    }).allowed;
  const { name } = object.metadata;
  let given: readonly PolicyRule[];
  if (kind.kind === "Role" || kind.kind === "ClusterRole") {
    if (old && sameIn(["rules", "aggregationRule"], object, old)) return;
    if (may("escalate", kind.plural, name)) return;
    const { rules, aggregationRule } = object as Role;
    given = aggregationRule ? EVERYTHING : (rules ?? []);
  } else {
    const { roleRef } = object as Binding;
    if (typeof roleRef?.name !== "string") return;
    if (old && sameIn(["roleRef", "subjects"], object, old)) return;
    if (may("bind", roleRef.kind === "ClusterRole" ? "clusterroles" : "roles", roleRef.name)) return;
    given = rulesOfRole(roleRef, namespace) ?? EVERYTHING;
  }
  const held = authorizer.rulesFor(user, namespace);
  const missing = given.filter((rule) => !isHeld(rule, held));
  if (missing.length === 0) return;
  const groups = user.groups.map((group) => JSON.stringify(group)).join(" ");
  const why = `user ${JSON.stringify(user.name)} (groups=[${groups}]) is attempting to grant RBAC permissions not currently held:`;
  throw forbidden(kind, name, [why, ...missing.map(describe)].join("\n"));
}

function sameIn(fields: readonly string[], object: KubeObject, old: KubeObject): boolean {
  return fields.every((field) => isDeepStrictEqual(object[field], old[field]));
}

/** Every single permission of the rule is in some rule that is held. */
function isHeld(rule: PolicyRule, held: readonly PolicyRule[]): boolean {
  const { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  const names = resourceNames.length > 0 ? resourceNames : [undefined];
  return verbs.every((verb) => {
    const holding = held.filter((one) => has(one.verbs, verb));
    const urls = nonResourceURLs.every((url) =>
      holding.some((one) => one.nonResourceURLs?.some((pattern) => coversPath(pattern, url))),
    );
    return (
      urls &&
      apiGroups.every((group) =>
        resources.every((resource) => names.every((name) => holding.some((one) => holds(one, group, resource, name)))),
      )
    );
  });
}

function holds(rule: PolicyRule, group: string, resource: string, name: string | undefined): boolean {
  const [plural = "", subresource = ""] = resource.split("/");
  if (!has(rule.apiGroups, group) || !coversResource(rule.resources ?? [], plural, subresource)) return false;
  return !rule.resourceNames?.length || (name !== undefined && rule.resourceNames.includes(name));
}

function describe(rule: PolicyRule): string {
  const part = (title: string, values: readonly string[] | undefined) =>
    values?.length ? [`${title}:[${values.map((value) => JSON.stringify(value)).join(" ")}]`] : [];
  const parts = [
    ...part("APIGroups", rule.apiGroups),
    ...part("Resources", rule.resources),
    ...part("ResourceNames", rule.resourceNames),
    ...part("NonResourceURLs", rule.nonResourceURLs),
    ...part("Verbs", rule.verbs),
  ];
  return `{${parts.join(", ")}}`;
}
