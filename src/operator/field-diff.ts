import type { KubeObject, ManagedFieldsEntry } from "../api/object.ts";

/** A field in which a live object is not what we want. */
export interface Difference {
  /** As people write it: `spec.template.spec.containers[name=agent].image`. */
  path: string;
  /** The same as the steps of `fieldsV1`, to ask who owns it. */
  steps: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;
/** A node of `fieldsV1`: `f:NAME`, `k:{...}` and `v:...` lead on, `.` is the thing itself. */
interface Owned {
  readonly [step: string]: Owned;
}

const IDENTITY = new Set(["apiVersion", "kind", "status"]);
const METADATA_IDENTITY = new Set(["name", "namespace"]);

/**
 * Where the live object differs from the wanted one. It does not differ when every field we want has our value and is owned by us,
 * and nothing else is owned by us. What others added is theirs. Ownership, which the server keeps per field, also shows how each
 * list merges, so nothing here knows any kind.
 */
export function differences(wanted: KubeObject, live: KubeObject, manager: string): Difference[] {
  const owned = ownedBy(live, manager);
  if (!owned) return [{ path: "", steps: [] }];
  const found: Difference[] = [];
  compareFields(
    content(wanted),
    content(live),
    content(owned as Fields, "f:") as Owned,
    { path: "", steps: [] },
    found,
  );
  return found;
}

/** What the manager applied to the object itself, with what it created it with. */
export function ownedBy(live: KubeObject, manager: string): Owned | undefined {
  const entries = (live.metadata.managedFields ?? []).filter(
    (entry) => entry.manager === manager && !entry.subresource,
  );
  const trees = entries.map((entry) => entry.fieldsV1 as Owned | undefined).filter((tree) => tree !== undefined);
  return trees.length === 0 ? undefined : trees.reduce(merged);
}

function merged(a: Owned, b: Owned): Owned {
  const all = { ...a };
  for (const [step, inner] of Object.entries(b)) all[step] = all[step] ? merged(all[step], inner) : inner;
  return all;
}

/** The object without its identity: that has no owner. */
function content(object: Fields, prefix = ""): Fields {
  const entries = Object.entries(object).filter(([key]) => !IDENTITY.has(key.replace(prefix, "")));
  const copy: Record<string, unknown> = Object.fromEntries(entries);
  const metadata = copy[`${prefix}metadata`] as Fields | undefined;
  if (!metadata) return copy;
  const kept = Object.entries(metadata).filter(([key]) => !METADATA_IDENTITY.has(key.replace(prefix, "")));
  if (kept.length === 0) delete copy[`${prefix}metadata`];
  else copy[`${prefix}metadata`] = Object.fromEntries(kept);
  return copy;
}

function compare(wanted: unknown, live: unknown, owned: Owned, at: Difference, found: Difference[]): void {
  if (Array.isArray(wanted)) compareList(wanted, live, owned, at, found);
  else if (isFields(wanted) && leadsOn(owned)) compareFields(wanted, isFields(live) ? live : {}, owned, at, found);
  else if (!covers(live, wanted)) found.push(at);
}

function compareFields(wanted: Fields, live: Fields, owned: Owned, at: Difference, found: Difference[]): void {
  for (const [key, value] of Object.entries(wanted)) {
    if (value === undefined) continue;
    const inner = inside(at, `f:${key}`, at.path === "" ? key : `${at.path}.${key}`);
    const ours = owned[`f:${key}`];
    if (!ours) {
      if (!isLeftOut(live[key], value)) found.push(inner);
    } else compare(value, live[key], ours, inner, found);
  }
  for (const step of Object.keys(owned)) {
    const key = step.slice(2);
    const stale = step.startsWith("f:") && wanted[key] === undefined;
    if (stale) found.push(inside(at, step, at.path === "" ? key : `${at.path}.${key}`));
  }
}

function compareList(
  wanted: readonly unknown[],
  live: unknown,
  owned: Owned,
  at: Difference,
  found: Difference[],
): void {
  const have = Array.isArray(live) ? live : [];
  const steps = Object.keys(owned).filter((step) => step !== ".");
  if (!steps.some((step) => /^[kv]:/.test(step))) {
    if (!coversList(have, wanted)) found.push(at);
    return;
  }
  const left = new Set(steps);
  for (const item of wanted) {
    const step = steps.find((candidate) => left.has(candidate) && stands(candidate, item));
    if (step === undefined) {
      found.push(at);
      continue;
    }
    left.delete(step);
    const inner = inside(at, step, `${at.path}[${label(step)}]`);
    const counterpart = have.find((candidate) => stands(step, candidate));
    if (counterpart === undefined) found.push(inner);
    else compare(item, counterpart, owned[step] as Owned, inner, found);
  }
  for (const step of left) found.push(inside(at, step, `${at.path}[${label(step)}]`));
}

/** Whether an item of a list is the one a step of `fieldsV1` names. A key the item leaves out has its default, whatever that is. */
function stands(step: string, item: unknown): boolean {
  const key: unknown = JSON.parse(step.slice(2));
  if (step.startsWith("v:")) return key === item;
  if (!isFields(key) || !isFields(item)) return false;
  return Object.entries(key).every(([field, value]) => item[field] === undefined || item[field] === value);
}

function label(step: string): string {
  const key: unknown = JSON.parse(step.slice(2));
  if (!isFields(key)) return String(key);
  return Object.entries(key)
    .map(([field, value]) => `${field}=${value}`)
    .join(",");
}

/** Whether a value holds all that is wanted; the server may have added defaults inside what is owned whole. */
function covers(live: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) return coversList(Array.isArray(live) ? live : [], wanted);
  if (isFields(wanted)) {
    const have = isFields(live) ? live : {};
    return Object.entries(wanted).every(([key, value]) => value === undefined || covers(have[key], value));
  }
  return live === wanted || isLeftOut(live, wanted);
}

/** Servers leave out what says nothing: `false`, 0, the empty text. Where that would mean something else, they write the default. */
function isLeftOut(live: unknown, wanted: unknown): boolean {
  return live === undefined && (wanted === null || wanted === false || wanted === 0 || wanted === "");
}

function coversList(live: readonly unknown[], wanted: readonly unknown[]): boolean {
  return live.length === wanted.length && wanted.every((item, index) => covers(live[index], item));
}

function leadsOn(owned: Owned): boolean {
  return Object.keys(owned).some((step) => step.startsWith("f:"));
}

function inside(at: Difference, step: string, path: string): Difference {
  return { path, steps: [...at.steps, step] };
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Someone else's change to a field of ours. */
export interface Drift {
  object: string;
  path: string;
  manager: string;
  /** When, by the server's clock; not known for a field that was removed. */
  time?: string;
}

/** The manager that changed a field: its newest owner besides us, or else the last other writer of the object. */
export function whoChanged(live: KubeObject, difference: Difference, manager: string): Pick<Drift, "manager" | "time"> {
  const others = (live.metadata.managedFields ?? [])
    .filter((entry) => entry.manager !== manager && !entry.subresource)
    .sort((a, b) => (b.time ?? "").localeCompare(a.time ?? ""));
  const owner = others.find((entry) => owns(entry, difference.steps)) ?? others[0];
  if (!owner) return { manager: "somebody" };
  return { manager: owner.manager ?? "somebody", ...(owner.time ? { time: owner.time } : {}) };
}

function owns(entry: ManagedFieldsEntry, steps: readonly string[]): boolean {
  let here: Owned | undefined = entry.fieldsV1 as Owned | undefined;
  for (const step of steps) {
    here = here?.[step];
    if (!here) return false;
    // Owned whole from here on.
    if (Object.keys(here).length === 0) return true;
  }
  return true;
}
