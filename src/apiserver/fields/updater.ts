import { type Comparison, compare, without } from "./compare.ts";
import { difference, EMPTY, type FieldSet, intersection, isEmpty, recursiveDifference, union } from "./field-set.ts";
import { equalJson } from "./json.ts";
import { merge } from "./merge.ts";
import { reconcile, withNamedFields } from "./reconcile.ts";
import { removeItems } from "./remove-items.ts";
import { toFieldSet } from "./to-field-set.ts";
import type { TypeNode } from "./type-node.ts";

/** A value, its type, and the version of the API both belong to. */
export interface TypedValue {
  readonly version: string;
  readonly type: TypeNode;
  readonly value: unknown;
}

/** What one manager owns, in the words of the version it spoke. */
export interface Owned {
  readonly set: FieldSet;
  readonly version: string;
  readonly applied: boolean;
}

export type Managers = ReadonlyMap<string, Owned>;

export interface Versions {
  /** The object in another version; undefined when that version is no longer served. */
  convert(object: TypedValue, version: string): TypedValue | undefined;
  /** Fields without an owner in a version, each with all that is below it. */
  ignored(version: string): FieldSet;
}

/** An apply that would change fields others own: manager to those fields. */
export class OwnershipConflict extends Error {
  override name = "OwnershipConflict";
  readonly conflicts: ReadonlyMap<string, FieldSet>;

  constructor(conflicts: ReadonlyMap<string, FieldSet>) {
    super(`conflict with ${[...conflicts.keys()].join(", ")}`);
    this.conflicts = conflicts;
  }
}

/**
 * Records a write that is not an apply: what it added or changed goes to its manager and is taken from all others;
 * what it removed is removed from all managers.
 */
export function update(
  versions: Versions,
  live: TypedValue,
  next: TypedValue,
  managers: Managers,
  manager: string,
): { managers: Managers; comparison: Comparison } {
  const comparison = without(compare(next.type, live.value, next.value), versions.ignored(next.version));
  const current = reconciled(versions, live, managers);
  const after = new Map(takeOver(versions, { live, next, comparison }, current, { manager, force: true }));
  const before = difference(after.get(manager)?.set ?? EMPTY, comparison.removed);
  const changed = union(union(before, comparison.modified), comparison.added);
  const set = recursiveDifference(changed, versions.ignored(next.version));
  if (isEmpty(set)) after.delete(manager);
  else after.set(manager, { set, version: next.version, applied: false });
  return { managers: after, comparison };
}

/**
 * Server-side apply: lays the configuration over the live object, removes what this manager applied before and now left
 * out (unless another manager owns it), and makes it the owner of exactly what the configuration mentions.
 * `object` is undefined when nothing changed. Throws OwnershipConflict unless forced.
 */
export function apply(
  versions: Versions,
  live: TypedValue,
  config: TypedValue,
  managers: Managers,
  who: { manager: string; force: boolean },
): { object: TypedValue | undefined; managers: Managers } {
  const current = new Map(reconciled(versions, live, managers));
  const merged = { ...config, value: merge(config.type, live.value, config.value) };
  const last = current.get(who.manager);
  const mentioned = toFieldSet(config.type, config.value);
  const set = recursiveDifference(mentioned, versions.ignored(config.version));
  const mine: Owned = { set, version: config.version, applied: true };
  current.set(who.manager, mine);
  const next = last === undefined || isEmpty(last.set) ? merged : prune(versions, merged, current, { last, mine });
  const comparison = without(compare(next.type, live.value, next.value), versions.ignored(config.version));
  const after = takeOver(versions, { live, next, comparison }, current, who);
  return { object: equalJson(live.value, next.value) ? undefined : next, managers: after };
}

interface Write {
  live: TypedValue;
  next: TypedValue;
  /** In the version of `next`, without ignored fields. */
  comparison: Comparison;
}

/** What a write gave a new value, and what it took away. */
interface Changes {
  set: FieldSet;
  removed: FieldSet;
}

function changesOf(comparison: Comparison | undefined): Changes | undefined {
  return comparison && { set: union(comparison.modified, comparison.added), removed: comparison.removed };
}

/** Takes the fields a write changed or removed from all other managers, or refuses to. Managers left with nothing go. */
function takeOver(
  versions: Versions,
  write: Write,
  managers: Managers,
  who: { manager: string; force: boolean },
): Managers {
  const changes = new Map<string, Changes | undefined>([[write.next.version, changesOf(write.comparison)]]);
  const conflicts = new Map<string, FieldSet>();
  const after = new Map<string, Owned>();
  for (const [manager, owned] of managers) {
    if (manager === who.manager) {
      if (!isEmpty(owned.set)) after.set(manager, owned);
      continue;
    }
    if (!changes.has(owned.version)) changes.set(owned.version, changesOf(compareIn(versions, write, owned.version)));
    const change = changes.get(owned.version);
    if (change === undefined) continue; // its version is gone, and with it any meaning of its fields
    const conflict = who.force ? EMPTY : intersection(owned.set, change.set);
    if (!isEmpty(conflict)) conflicts.set(manager, conflict);
    const set = difference(difference(owned.set, change.set), change.removed);
    if (!isEmpty(set)) after.set(manager, set === owned.set ? owned : { ...owned, set });
  }
  if (conflicts.size > 0) throw new OwnershipConflict(conflicts);
  return after;
}

function compareIn(versions: Versions, write: Write, version: string): Comparison | undefined {
  const live = versions.convert(write.live, version);
  const next = live && versions.convert(write.next, version);
  return next && without(compare(next.type, live.value, next.value), versions.ignored(version));
}

/** Sets written under an older schema, brought up to today's; those of versions no longer served are dropped. */
function reconciled(versions: Versions, live: TypedValue, managers: Managers): Managers {
  const types = new Map<string, TypeNode | undefined>([[live.version, live.type]]);
  const current = new Map<string, Owned>();
  for (const [manager, owned] of managers) {
    if (!types.has(owned.version)) types.set(owned.version, versions.convert(live, owned.version)?.type);
    const type = types.get(owned.version);
    if (type === undefined) continue;
    const set = reconcile(type, owned.set);
    current.set(manager, set === owned.set ? owned : { ...owned, set });
  }
  return current;
}

function prune(
  versions: Versions,
  merged: TypedValue,
  managers: Managers,
  own: { last: Owned; mine: Owned },
): TypedValue {
  const { last, mine } = own;
  const start = versions.convert(merged, last.version);
  if (start === undefined) return merged;
  const bare = remove(start, withNamedFields(start.type, last.set));
  const owned = addBackOwned(versions, start, bare, managers);
  const pruned = addBackDangling(versions, start, owned, last);
  return versions.convert(pruned, mine.version) ?? merged;
}

function remove(object: TypedValue, set: FieldSet): TypedValue {
  return { ...object, value: removeItems(object.type, object.value, set) };
}

function namedFieldsOf(object: TypedValue): FieldSet {
  return withNamedFields(object.type, toFieldSet(object.type, object.value));
}

/** Restores what pruning removed although some manager, or this manager's new configuration, owns it. */
function addBackOwned(versions: Versions, merged: TypedValue, pruned: TypedValue, managers: Managers): TypedValue {
  const byVersion = new Map<string, FieldSet>();
  for (const { version, set } of managers.values()) {
    byVersion.set(version, union(byVersion.get(version) ?? EMPTY, set));
  }
  // The pruned object's own version first: converting it may need a field that pruning took away.
  const order = [...byVersion.keys()].sort((a, b) => Number(b === pruned.version) - Number(a === pruned.version));
  let result = pruned;
  for (const version of order) {
    const whole = versions.convert(merged, version);
    const part = versions.convert(result, version);
    if (whole === undefined || part === undefined) continue;
    const keep = union(namedFieldsOf(part), withNamedFields(whole.type, byVersion.get(version)!));
    result = remove(whole, difference(namedFieldsOf(whole), keep));
  }
  return result;
}

/** Restores what this manager never owned: fields without an owner only lose a value when their owner removes them. */
function addBackDangling(versions: Versions, merged: TypedValue, pruned: TypedValue, last: Owned): TypedValue {
  const part = versions.convert(pruned, last.version);
  if (part === undefined) return merged;
  const gone = difference(namedFieldsOf(merged), namedFieldsOf(part));
  return remove(merged, intersection(gone, withNamedFields(merged.type, last.set)));
}
