import type { KubeObject } from "../api/object.ts";
import { tierOf } from "../api/resources/policy-names.ts";
import { type FieldRequirement, matchesFields, parseFieldSelector } from "../api/schema/field-selector.ts";
import { badRequest } from "../apiserver/status-errors.ts";
import type { Parts, V3Request } from "./request.ts";

/** Which objects a list, a watch or a deletion of many is about. */
export interface Selection {
  query: Record<string, string>;
  /** Says whether the caller selected it and may see it; objects as people see them. */
  keeps(object: KubeObject): Promise<boolean>;
  /** Objects may be left out of what the main API server sends, so its counts do not hold. */
  filters: boolean;
}

const PASSED_ON = [
  "labelSelector",
  "limit",
  "continue",
  "resourceVersion",
  "resourceVersionMatch",
  "timeoutSeconds",
  "allowWatchBookmarks",
  "sendInitialEvents",
];

/** The main API server selects by name and labels. Tiers are looked at here: it does not know them, nor who may see which. */
export async function selectionOf(parts: Parts, asked: V3Request): Promise<Selection> {
  const { kind, info, query, incoming } = asked;
  const fields = parseFieldSelector(query.get("fieldSelector") ?? "");
  if (info.name !== "") fields.push({ path: "metadata.name", op: "=", value: info.name });
  const byTier = fields.filter(({ path }) => kind.tiered && path === "spec.tier");
  const passed = fields.filter((field) => !byTier.includes(field));
  for (const { path } of passed) {
    if (path !== "metadata.name" && path !== "metadata.namespace")
      throw badRequest(`field label not supported: ${path}`);
  }
  const selector = passed.map((field) => printed(field, parts, asked)).join(",");
  const given = PASSED_ON.flatMap((name) => (query.get(name) === null ? [] : [[name, query.get(name)!] as const]));
  const only = byTier.find(({ op }) => op === "=")?.value;
  if (only !== undefined) await parts.tiers.mustAllow(incoming.user, kind, info, "", only);
  return {
    query: { ...Object.fromEntries(given), ...(selector !== "" && { fieldSelector: selector }) },
    filters: kind.tiered,
    keeps: async ({ metadata }) => {
      if (!kind.tiered) return true;
      const tier = tierOf(metadata.name);
      if (!matchesFields(byTier, () => tier)) return false;
      return await parts.tiers.allows(incoming.user, kind, info, tier, metadata.name);
    },
  };
}

function printed({ path, op, value }: FieldRequirement, parts: Parts, { kind }: V3Request): string {
  const stored = path === "metadata.name" ? parts.translator.storedName(kind, value) : value;
  return `${path}${op}${stored.replace(/[\\,=]/g, "\\$&")}`;
}
