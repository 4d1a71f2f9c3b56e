import type { ResourceKind } from "../../api/object.ts";

/** One verb on one resource, as RBAC writes it. */
export interface Right {
  verb: string;
  group: string;
  /** The plural, with the subresource if it is about one: `pods/log`. */
  resource: string;
  /** Left out: of the cluster, or in all namespaces. */
  namespace?: string;
  /** Left out: of any name. */
  name?: string;
  /** Why a run may end without having used it. */
  sometimes?: string;
  /** It is used only if the cluster has what it is about, so its absence is no failure. */
  optional?: true;
}

export interface RightPlace {
  namespace?: string | undefined;
  name?: string;
  subresource?: string;
  sometimes?: string;
  optional?: true;
}

/** Requests that name no object: RBAC cannot limit them to a name. */
const NAMELESS = new Set(["create", "deletecollection"]);

export function rightsOn(
  { group, plural, namespaced }: Pick<ResourceKind, "group" | "plural" | "namespaced">,
  verbs: readonly string[],
  { namespace, name, subresource, sometimes, optional }: RightPlace = {},
): Right[] {
  return verbs.map((verb) => {
    // What is there at the first look is not watched.
    const why = sometimes ?? (verb === "watch" ? "if there is something to wait for" : undefined);
    return {
      verb,
      group,
      resource: subresource === undefined ? plural : `${plural}/${subresource}`,
      ...(namespaced && namespace !== undefined && { namespace }),
      ...(name !== undefined && !NAMELESS.has(verb) && { name }),
      ...(why !== undefined && { sometimes: why }),
      ...(optional && { optional }),
    };
  });
}

/** The same for two rights that allow the same. */
export const rightKey = ({ verb, group, resource, namespace, name }: Right): string =>
  JSON.stringify([verb, group, resource, namespace, name]);

/** `daemonsets.apps`, as kubectl writes it. */
export function resourceName({ group, resource }: Pick<Right, "group" | "resource">): string {
  const [plural = "", subresource] = resource.split("/");
  const qualified = group === "" ? plural : `${plural}.${group}`;
  return subresource === undefined ? qualified : `${qualified}/${subresource}`;
}

/** Rights that differ in the verb alone. Without names: of any name. */
export interface RightGroup {
  verbs: string[];
  group: string;
  resource: string;
  namespace?: string;
  names: string[];
}

/** Each right once, as few rows as RBAC has rules for them, in an order that does not depend on how they were found. */
export function groupRights(rights: readonly Right[]): RightGroup[] {
  const named = new Map<string, { right: Right; names: Set<string>; any: boolean }>();
  for (const right of rights) {
    const key = [right.group, right.resource, right.namespace ?? "", right.verb].join(" ");
    const known = named.get(key) ?? { right, names: new Set<string>(), any: false };
    if (right.name === undefined) known.any = true;
    else known.names.add(right.name);
    named.set(key, known);
  }
  const groups = new Map<string, RightGroup>();
  for (const { right, names, any } of named.values()) {
    const { group, resource, namespace, verb } = right;
    const listed = any ? [] : [...names].sort();
    const key = [group, resource, namespace ?? "", ...listed].join(" ");
    const known = groups.get(key) ?? {
      verbs: [],
      group,
      resource,
      ...(namespace !== undefined && { namespace }),
      names: listed,
    };
    known.verbs.push(verb);
    groups.set(key, known);
  }
  return [...groups.values()]
    .map((one) => ({ ...one, verbs: one.verbs.sort((a, b) => VERBS.indexOf(a) - VERBS.indexOf(b)) }))
    .sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
}

const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate"];

function sortKey(group: RightGroup): string {
  return [group.namespace ?? "", group.group, group.resource, group.verbs.join(","), ...group.names].join(" ");
}
