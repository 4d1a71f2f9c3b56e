import { isDeepStrictEqual as same } from "node:util";
import type { KubeObject, ManagedFieldsEntry } from "../../api/object.ts";
import { LAST_APPLIED } from "../last-applied.ts";
import { isDefault } from "./known-defaults.ts";
import { itemKey, listRule } from "./list-rules.ts";

/** Written by controllers and tools for themselves, in objects of any manager. */
const NOISE = new Set([
  LAST_APPLIED,
  "deployment.kubernetes.io/revision",
  "deprecated.daemonset.template.generation",
  "kubectl.kubernetes.io/restartedAt",
]);
const CONTROLLERS = /^(?:kube-(?:controller-manager|scheduler)|kubelet|cloud-controller-manager)$/;

type Fields = Record<string, unknown>;

/**
 * The manifest of an object as its people would have it now: what they last applied, with what they changed since. What the server
 * filled in and what controllers wrote is left out, as far as managedFields show it. `newer` is the object of the new version, which may be
 * there in part: an apply that ended half way.
 */
export function appliedObject(live: KubeObject, base: KubeObject, newer?: KubeObject): KubeObject {
  const written = writtenPart(live);
  const applied = lastApplied(live);
  const entries = (live.metadata.managedFields ?? []).filter(isOfPeople);
  const others = entries.filter(({ manager }) => !applied || manager !== "kubectl-client-side-apply");
  const parts = [
    ...(applied ? [refreshed(writtenPart(applied), written, "")] : []),
    ...others.map(({ fieldsV1 = {} }) => projected(written, fieldsV1)),
  ];
  const all = parts.length > 0 ? parts.reduce((sum, part) => overlaid(sum, part, "")) : written;
  const { name, namespace } = live.metadata;
  const kept = withoutDefaults(all, { base, newer }, "") as Fields;
  const metadata = {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...((kept["metadata"] as Fields | undefined) ?? {}),
  };
  return { ...kept, apiVersion: base.apiVersion, kind: live.kind, metadata } as unknown as KubeObject;
}

function isOfPeople({ manager = "", subresource }: ManagedFieldsEntry): boolean {
  return !subresource && !CONTROLLERS.test(manager);
}

/** Without what only the server writes. */
function writtenPart(object: KubeObject): Fields {
  const { status: _, metadata, ...written } = object;
  const { annotations = {} } = metadata;
  const { "kubernetes.io/metadata.name": __, ...labels } = metadata.labels ?? {};
  // Only the server writes these fields of a namespace.
  const { spec, ...unspecified } = written;
  const rest = object.kind === "Namespace" ? unspecified : { ...unspecified, ...(spec === undefined ? {} : { spec }) };
  const own = Object.fromEntries(Object.entries(annotations).filter(([key]) => !NOISE.has(key)));
  return {
    ...rest,
    metadata: {
      ...(Object.keys(labels).length > 0 ? { labels } : {}),
      ...(Object.keys(own).length > 0 ? { annotations: own } : {}),
    },
  };
}

function lastApplied({ metadata }: KubeObject): KubeObject | undefined {
  const text = metadata.annotations?.[LAST_APPLIED];
  if (text === undefined) return undefined;
  try {
    const parsed = JSON.parse(text) as KubeObject;
    return typeof parsed.metadata?.name === "string" ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** The shape of what was applied, with the values of now; what is no longer there is left out. */
function refreshed(applied: unknown, live: unknown, name: string): unknown {
  if (isFields(applied) && isFields(live)) {
    const entries = Object.entries(applied).filter(([key]) => live[key] !== undefined);
    return Object.fromEntries(entries.map(([key, value]) => [key, refreshed(value, live[key], key)]));
  }
  if (Array.isArray(applied) && Array.isArray(live)) {
    const rule = listRule(name, [applied, live]);
    if (rule.as !== "map") return live;
    return applied.flatMap((item) => {
      const now = live.find((other) => itemKey(other, rule.by) === itemKey(item, rule.by));
      return now === undefined ? [] : [refreshed(item, now, name)];
    });
  }
  return live;
}

/** What of a value one manager owns, by the server's record of it. */
function projected(value: unknown, fields: Record<string, unknown>): unknown {
  const inner = Object.entries(fields).filter(([key]) => key !== ".");
  if (isFields(value)) {
    const owned = inner.flatMap(([key, sub]) => {
      const name = key.startsWith("f:") ? key.slice(2) : undefined;
      if (name === undefined || value[name] === undefined) return [];
      return [[name, isWhole(sub) ? value[name] : projected(value[name], sub as Record<string, unknown>)] as const];
    });
    return Object.fromEntries(owned);
  }
  if (Array.isArray(value)) return value.flatMap((item) => projectedItem(item, inner));
  return value;
}

const isWhole = (fields: unknown): boolean => !isFields(fields) || Object.keys(fields).length === 0;

function projectedItem(item: unknown, owned: readonly (readonly [string, unknown])[]): unknown[] {
  for (const [key, sub] of owned) {
    if (key.startsWith("v:") && same(item, JSON.parse(key.slice(2)))) return [item];
    if (!key.startsWith("k:") || !isFields(item)) continue;
    const keys = JSON.parse(key.slice(2)) as Fields;
    if (!Object.entries(keys).every(([name, value]) => same(item[name], value))) continue;
    return [{ ...keys, ...(projected(item, (sub ?? {}) as Record<string, unknown>) as Fields) }];
  }
  return [];
}

/** Both, the second winning where both say something. */
function overlaid(under: unknown, over: unknown, name: string): unknown {
  if (isFields(under) && isFields(over)) {
    const keys = [...new Set([...Object.keys(under), ...Object.keys(over)])];
    return Object.fromEntries(
      keys.map((key) => [
        key,
        over[key] === undefined
          ? under[key]
          : under[key] === undefined
            ? over[key]
            : overlaid(under[key], over[key], key),
      ]),
    );
  }
  if (Array.isArray(under) && Array.isArray(over)) {
    const rule = listRule(name, [under, over]);
    if (rule.as === "whole") return over;
    const keyOf = (item: unknown) => (rule.as === "map" ? itemKey(item, rule.by) : JSON.stringify(item));
    const merged = under.map((item) => {
      const other = over.find((one) => keyOf(one) === keyOf(item));
      return other === undefined ? item : overlaid(item, other, name);
    });
    return [...merged, ...over.filter((item) => !under.some((one) => keyOf(one) === keyOf(item)))];
  }
  return over;
}

interface Published {
  base: unknown;
  newer: unknown;
}

/**
 * Fields with the server's default value are no edits, unless a published manifest has them: the one that was applied with any value, the new
 * one with this value.
 */
function withoutDefaults(value: unknown, { base, newer }: Published, name: string): unknown {
  if (Array.isArray(value)) {
    const [was, next] = [listOf(base), listOf(newer)];
    const rule = listRule(name, [value, was, next]);
    return value.map((item) => {
      const itemOf = (list: unknown[]) =>
        rule.as === "map" ? list.find((one) => itemKey(one, rule.by) === itemKey(item, rule.by)) : item;
      return withoutDefaults(item, { base: itemOf(was), newer: itemOf(next) }, name);
    });
  }
  if (!isFields(value)) return value;
  const [was, next] = [fieldsOf(base), fieldsOf(newer)];
  const kept = Object.entries(value).filter(
    ([key, one]) => was[key] !== undefined || same(next[key], one) || !isDefault(key, one, value),
  );
  return Object.fromEntries(
    kept.map(([key, one]) => [key, withoutDefaults(one, { base: was[key], newer: next[key] }, key)]),
  );
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
