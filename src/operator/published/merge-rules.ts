import type { Rule } from "../render/rbac.ts";

/** The same rights with as few rules as they need, in an order that does not depend on the order given. */
export function mergeRules(rules: readonly Rule[]): Rule[] {
  const verbsOf = new Map<string, Set<string>>();
  for (const { apiGroups, resources, resourceNames = [], verbs } of rules) {
    for (const group of apiGroups) {
      for (const resource of resources) {
        const key = JSON.stringify([group, resource, [...resourceNames].sort()]);
        const known = verbsOf.get(key) ?? new Set();
        for (const verb of verbs) known.add(verb);
        verbsOf.set(key, known);
      }
    }
  }
  const merged = new Map<string, { group: string; names: string[]; verbs: string[]; resources: string[] }>();
  for (const [key, set] of [...verbsOf].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const [group, resource, names] = JSON.parse(key) as [string, string, string[]];
    const verbs = VERBS.filter((verb) => set.has(verb));
    const alike = JSON.stringify([group, names, verbs]);
    const rule = merged.get(alike) ?? { group, names, verbs, resources: [] };
    rule.resources.push(resource);
    merged.set(alike, rule);
  }
  return [...merged.values()].map(({ group, resources, names, verbs }) => ({
    apiGroups: [group],
    resources,
    ...(names.length > 0 ? { resourceNames: names } : {}),
    verbs,
  }));
}

/** Every verb our roles use, in the order people expect to read them. */
const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "bind", "use"];
