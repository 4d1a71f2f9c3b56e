import type { KubeObject } from "../api/object.ts";
import type { PathPart } from "./field-changes.ts";

/** Who set a field, as the object's managed fields say; the nearest they name where the field itself is not named. */
export function ownerOf(object: KubeObject, path: readonly PathPart[]): string | undefined {
  const found = (object.metadata.managedFields ?? [])
    .map(({ manager, fieldsV1 = {} }) => ({ manager, depth: depthOf(fieldsV1, object, path) }))
    .filter(({ depth }) => depth > 0)
    .sort((a, b) => b.depth - a.depth);
  const deepest = found.filter(({ depth }) => depth === found[0]?.depth && depth === path.length);
  return deepest.length === 0 ? undefined : [...new Set(deepest.map(({ manager }) => manager))].join(", ");
}

/** How far into the path the owned fields go. A field owned as a whole owns all that is in it. */
function depthOf(fields: Record<string, unknown>, object: unknown, path: readonly PathPart[]): number {
  let node: Record<string, unknown> = fields;
  let value: unknown = object;
  for (const [depth, part] of path.entries()) {
    if (depth > 0 && isLeaf(node)) return path.length;
    const next = typeof part === "string" ? node[`f:${part}`] : itemNode(node, value, part.item);
    if (next === undefined) return depth;
    node = next as Record<string, unknown>;
    value = typeof part === "string" ? (value as Record<string, unknown>)?.[part] : (value as unknown[])?.[part.item];
  }
  return path.length;
}

const isLeaf = (node: Record<string, unknown>) => Object.keys(node).every((key) => key === ".");

/** The entry of a list item: `k:{"name":"agent"}` names it by fields it has. */
function itemNode(node: Record<string, unknown>, list: unknown, item: number): unknown {
  const value = Array.isArray(list) ? (list[item] as Record<string, unknown> | undefined) : undefined;
  const key = Object.keys(node).find((each) => {
    if (!each.startsWith("k:") || value === undefined) return false;
    const wanted = JSON.parse(each.slice(2)) as Record<string, unknown>;
    return Object.entries(wanted).every(([name, expected]) => value[name] === expected);
  });
  return key === undefined ? undefined : node[key];
}
