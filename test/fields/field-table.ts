import type { Noun } from "../../src/api/names.ts";
import { policyRule } from "../../src/api/resources/policy-rule.ts";
import type { Schema } from "../../src/api/schema/schema.ts";

type Fields = Record<string, unknown>;

/** What leaves the programs for a spec: rendered objects, a model, a decision. */
type See = (spec: never) => unknown;

/**
 * How a field is shown to have an effect: `set` is laid over `base`, which then differs in this field only, and what is seen is another.
 * Or the scenario of a test that sets it, or why there is nothing to see.
 */
export type Shown = { base?: object; set: object; seenIn?: See } | { scenario: string } | { only: string };

/** The fields of one kind, by their path below `spec`; lists are walked into. */
export interface KindTable {
  noun: Noun | "rule";
  base?: object;
  seenIn: See;
  fields: Readonly<Record<string, Shown>>;
}

/** Every field below a schema that holds a value; a rule is a kind of its own. */
export function leavesOf(schema: Schema, path = ""): string[] {
  const inner = schema.items ?? schema;
  if (path !== "" && (inner === policyRule || inner.properties === undefined)) return [path];
  return Object.entries(inner.properties ?? {}).flatMap(([name, field]) =>
    leavesOf(field, path === "" ? name : `${path}.${name}`),
  );
}

/** The spec with the field set. Lists are replaced as a whole. */
export function laidOver(base: unknown, set: unknown): unknown {
  if (!isFields(base) || !isFields(set)) return set;
  const changed = Object.entries(set).map(([name, value]) => [name, laidOver(base[name], value)]);
  return { ...base, ...Object.fromEntries(changed) };
}

/** The fields of `leaves` in which two specs differ. */
export function differingFields(leaves: readonly string[], one: unknown, other: unknown): string[] {
  const at = (spec: unknown, path: string) => JSON.stringify(valuesAt(spec, path.split(".")));
  return leaves.filter((path) => at(one, path) !== at(other, path));
}

/** Whether what is seen is another with the field set than without. */
export function makesADifference(seenIn: See, base: unknown, spec: unknown): boolean {
  const see = seenIn as (spec: unknown) => unknown;
  return JSON.stringify(see(spec), plain) !== JSON.stringify(see(base), plain);
}

function valuesAt(value: unknown, path: readonly string[]): unknown[] {
  if (path.length === 0) return [value];
  if (Array.isArray(value)) return value.flatMap((item) => valuesAt(item, path));
  const [first = "", ...rest] = path;
  return isFields(value) && first in value ? valuesAt(value[first], rest) : [];
}

function plain(_key: string, value: unknown): unknown {
  if (value instanceof Map || value instanceof Set) return [...value];
  return value instanceof RegExp || typeof value === "bigint" ? String(value) : value;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
