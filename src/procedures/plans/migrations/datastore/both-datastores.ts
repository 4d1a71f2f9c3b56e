import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../../../../api/object.ts";
import { nameOf, targetOf } from "../../../actions/objects/target.ts";

const RIGHTS = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

export const isRights = ({ kind }: KubeObject): boolean => RIGHTS.includes(kind);

/** The objects with what those in the cluster have in addition: rules of roles, and settings. Agents of both datastores work with them. */
export function withBoth(objects: readonly KubeObject[], live: readonly KubeObject[]): KubeObject[] {
  const there = new Map(live.map((object) => [nameOf(targetOf(object)), object]));
  return objects.map((object) => {
    const now = there.get(nameOf(targetOf(object)));
    if (!now) return object;
    if (object.kind === "ConfigMap") return { ...object, data: { ...fields(now["data"]), ...fields(object["data"]) } };
    if (object.kind !== "ClusterRole" && object.kind !== "Role") return object;
    const rules = list(object["rules"]);
    const more = list(now["rules"]).filter((rule) => !rules.some((one) => isDeepStrictEqual(one, rule)));
    return { ...object, rules: [...rules, ...more] };
  });
}

const fields = (value: unknown): Record<string, unknown> => (value ?? {}) as Record<string, unknown>;
const list = (value: unknown): unknown[] => (value ?? []) as unknown[];
