import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { CLEANUP_NAMESPACE } from "../../api/tables/node-cleaner.ts";
import { CANARY_NAMESPACE } from "../canary/canary-objects.ts";
import { groupRights, type Right, type RightGroup } from "./right.ts";

const API_VERSION = "rbac.authorization.k8s.io/v1";

/**
 * The least roles with these rights, as a list that kubectl applies. A Role needs its namespace, and vendorctl creates and deletes those of the service,
 * so rights in them are part of the ClusterRole.
 */
export function roleObjects(name: string, rights: readonly Right[], names: Names): KubeObject[] {
  const passing = new Set([...ownNamespaces(names), CANARY_NAMESPACE, CLEANUP_NAMESPACE]);
  const placed = rights.map(({ namespace, ...right }): Right => {
    return namespace === undefined || passing.has(namespace) ? right : { ...right, namespace };
  });
  const wide = placed.filter(({ namespace }) => namespace === undefined);
  const namespaces = [...new Set(placed.flatMap(({ namespace }) => namespace ?? []))].sort();
  return [
    { apiVersion: API_VERSION, kind: "ClusterRole", metadata: { name }, rules: rulesOf(wide) },
    ...namespaces.map((namespace) => ({
      apiVersion: API_VERSION,
      kind: "Role",
      metadata: { name, namespace },
      rules: rulesOf(placed.filter((right) => right.namespace === namespace)),
    })),
  ];
}

function ownNamespaces({ namespaces }: Names): string[] {
  return [namespaces.operator, namespaces.system, namespaces.apiServerBeforeV331];
}

function rulesOf(rights: readonly Right[]): object[] {
  const rules = new Map<string, { group: RightGroup; resources: string[] }>();
  for (const group of groupRights(rights)) {
    const key = JSON.stringify([group.group, group.verbs, group.names]);
    const known = rules.get(key) ?? { group, resources: [] };
    known.resources.push(group.resource);
    rules.set(key, known);
  }
  return [...rules.values()].map(({ group, resources }) => ({
    apiGroups: [group.group],
    resources,
    ...(group.names.length > 0 && { resourceNames: group.names }),
    verbs: group.verbs,
  }));
}
