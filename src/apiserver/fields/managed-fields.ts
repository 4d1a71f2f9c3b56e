import { type KubeObject, type ObjectMeta, parseGroupVersion } from "../../api/object.ts";
import { StatusError } from "../../api/status.ts";
import type { ServedKind } from "../resource.ts";
import { conflictError } from "./conflict-error.ts";
import { difference, EMPTY, type FieldSet, fieldSetOf, isEmpty, pathsOf, union } from "./field-set.ts";
import { equalJson, type JsonMap } from "./json.ts";
import { KUBECTL, ownedByClientSideApply, withLastApplied } from "./last-applied.ts";
import { UntypableValue } from "./list-items.ts";
import {
  asksForReset,
  capUpdaters,
  type Owner,
  type Owners,
  ownerId,
  readEntries,
  storedEntries,
  writeEntries,
} from "./managed-entries.ts";
import { typeFromSchema } from "./type-from-schema.ts";
import type { TypeNode } from "./type-node.ts";
import { apply, type Managers, OwnershipConflict, update, type Versions } from "./updater.ts";
import { validate } from "./validate.ts";

export interface Who {
  manager: string;
  apiVersion: string;
  subresource?: string;
  /** Now, as RFC 3339. */
  time: string;
}

/** Keeps `metadata.managedFields` true through every write to objects of one kind and version. */
export interface FieldOwnership {
  /** For a create (no live object), a PUT, and every patch but apply: `next` with its managedFields brought up to date. */
  update(live: KubeObject | undefined, next: KubeObject, who: Who): KubeObject;
  /**
   * Server-side apply: the merged object, not yet defaulted or validated. Throws StatusError: 409 naming the other
   * managers, or 400 for a configuration that does not fit the schema. Returns `live` itself when nothing changes.
   */
  apply(live: KubeObject | undefined, config: KubeObject, who: Who, options: { force: boolean }): KubeObject;
}

/** The identity of an object and what only the server sets have no owner. */
const NEVER_OWNED_METADATA: ReadonlySet<string> = new Set([
  "name",
  "namespace",
  "creationTimestamp",
  "selfLink",
  "uid",
  "clusterName",
  "generation",
  "managedFields",
  "resourceVersion",
]);
const NEVER_OWNED = fieldSetOf(
  ["apiVersion"],
  ["kind"],
  ["metadata"],
  ...[...NEVER_OWNED_METADATA].map((name) => ["metadata", name]),
);
const BEFORE_FIRST_APPLY = "before-first-apply";
/** The write in hand, while it is not yet clear whether it changes anything its manager could own. */
const THIS_WRITE = "\u0000this write";

type OwnedKind = Pick<ServedKind, "schema" | "definitions" | "status" | "custom">;

export function fieldOwnership(kind: OwnedKind): FieldOwnership {
  const keeper = new OwnershipKeeper(kind);
  return {
    update: (live, next, who) => keeper.update(live, next, who),
    apply: (live, config, who, options) => keeper.apply(live, config, who, options.force),
  };
}

class OwnershipKeeper {
  private readonly type: TypeNode;
  /** What a new object is compared with. */
  private readonly blank: JsonMap;
  /** Fields an endpoint resets whatever the client sent, so that no manager comes to own them through it. */
  private readonly notThroughMain: FieldSet;
  private readonly notThroughStatus: FieldSet;

  constructor(kind: OwnedKind) {
    this.type = typeFromSchema(kind.schema, kind.definitions);
    this.blank = kind.custom ? { metadata: {} } : blankOf(this.type);
    this.notThroughMain = kind.status ? fieldSetOf(["status"]) : EMPTY;
    const others = [...this.type.map!.fields.keys()].filter((name) => name !== "status");
    this.notThroughStatus = fieldSetOf(...others.map((name) => [name]));
  }

  update(live: KubeObject | undefined, next: KubeObject, who: Who): KubeObject {
    const owners = startingOwners(live, next, who);
    // Ownership that was not recorded from the start would be wrong half-way in; the first apply starts it.
    if (live !== undefined && owners.size === 0) return withEntries(next, owners);
    try {
      const after = this.afterUpdate(live, next, owners, who);
      if (live !== undefined && after === owners && sameObject(live, next, owners)) return live;
      return withEntries(next, capUpdaters(after));
    } catch (error) {
      // An object its schema cannot place is for validation to refuse; ownership must not be lost over it.
      if (error instanceof UntypableValue) return withEntries(next, owners);
      throw error;
    }
  }

  apply(live: KubeObject | undefined, config: KubeObject, who: Who, force: boolean): KubeObject {
    this.checkConfiguration(config, who);
    const known = storedEntries(live);
    const owners: Owners =
      live && known.size === 0
        ? this.afterUpdate(undefined, live, known, { ...who, manager: BEFORE_FIRST_APPLY })
        : known;
    const { object, after } = this.applied(live, config, owners, who, force);
    const merged = who.manager === KUBECTL ? withLastApplied(object, config) : object;
    const changed = live === undefined || !equalJson(live, merged);
    const timed = withTime(after, owners, { who, changed });
    if (!changed && sameOwners(timed, known)) return live;
    return withEntries(merged, timed);
  }

  private checkConfiguration(config: KubeObject, who: Who): void {
    if (config.apiVersion !== who.apiVersion) {
      throw badRequest(
        `Incorrect version specified in apply patch. Specified patch version: ${config.apiVersion}, expected: ${who.apiVersion}`,
      );
    }
    if (config.metadata.managedFields) throw badRequest("metadata.managedFields must be nil");
    const problems = validate(this.type, config, { allowDuplicates: false });
    if (problems.length === 0) return;
    const { namespace, name } = config.metadata;
    const { group, version } = parseGroupVersion(config.apiVersion);
    const what = `${namespace ?? ""}/${name}; ${group}/${version}, Kind=${config.kind}`;
    const says = problems.length === 1 ? problems[0] : ["errors:", ...problems.map((line) => `  ${line}`)].join("\n");
    throw badRequest(`failed to create typed patch object (${what}): ${says}`);
  }

  private applied(live: KubeObject | undefined, config: KubeObject, owners: Owners, who: Who, force: boolean) {
    const id = idOf(who, true);
    const { ours, foreign } = byGroup(owners, who);
    const attempt = (forced: boolean) =>
      apply(
        this.versions(who),
        { version: who.apiVersion, type: this.type, value: live ?? {} },
        { version: who.apiVersion, type: this.type, value: config },
        ours,
        { manager: id, force: forced },
      );
    let result: ReturnType<typeof attempt>;
    try {
      result = attempt(force);
    } catch (error) {
      if (!(error instanceof OwnershipConflict)) throw error;
      const rest = live ? this.withoutClientSide(error, live, who) : error;
      if (rest !== undefined) throw conflictError(rest, owners);
      result = attempt(true);
    }
    const after = ownersFrom(result.managers, owners, foreign, who);
    const mine = after.get(id);
    const set = difference(mine?.set ?? EMPTY, NEVER_OWNED);
    if (mine && isEmpty(set)) after.delete(id);
    else if (mine) after.set(id, { ...mine, set });
    return { object: (result.object?.value ?? live ?? config) as KubeObject, after };
  }

  /** What is left of a conflict once kubectl is allowed what its client-side apply had set; undefined for nothing. */
  private withoutClientSide(conflict: OwnershipConflict, live: KubeObject, who: Who): OwnershipConflict | undefined {
    const allowed = who.manager === KUBECTL && ownedByClientSideApply(this.type, live, who.apiVersion);
    if (!allowed) return conflict;
    const left = [...conflict.conflicts]
      .map(([id, set]): [string, FieldSet] => [id, difference(set, allowed)])
      .filter(([, set]) => pathsOf(set).length > 0);
    return left.length > 0 ? new OwnershipConflict(new Map(left)) : undefined;
  }

  /** The owners after a write that is not an apply; the very same map when it changed no owned field. */
  private afterUpdate(live: KubeObject | undefined, next: KubeObject, owners: Owners, who: Who): Owners {
    const { ours, foreign } = byGroup(owners, who);
    const { managers } = update(
      this.versions(who),
      { version: who.apiVersion, type: this.type, value: live ? ownable(live) : this.blank },
      { version: who.apiVersion, type: this.type, value: ownable(next) },
      ours,
      THIS_WRITE,
    );
    const written = managers.get(THIS_WRITE);
    if (written === undefined && sameManagers(managers, ours)) return owners;
    const after = ownersFrom(managers, owners, foreign, who);
    after.delete(THIS_WRITE);
    if (written === undefined) return after;
    const id = idOf(who, false);
    const before = after.get(id);
    after.set(id, { ...newOwner(who, false), set: before ? union(before.set, written.set) : written.set });
    return after;
  }

  private versions(who: Who): Versions {
    const ignored = who.subresource === "status" ? this.notThroughStatus : this.notThroughMain;
    return {
      // All versions of a resource have one shape.
      convert: (object, version) => (object.version === version ? object : { ...object, version }),
      ignored: () => ignored,
    };
  }
}

/** Kubernetes' own kinds are born with an empty spec and status, so writing inside one is not owning it. */
function blankOf(type: TypeNode): JsonMap {
  const sections = ["spec", "status"].filter((name) => type.map!.fields.get(name)?.type().map?.atomic === false);
  return { metadata: {}, ...Object.fromEntries(sections.map((name) => [name, {}])) };
}

function badRequest(message: string): StatusError {
  return new StatusError(400, "BadRequest", message);
}

function newOwner(who: Who, applied: boolean): Omit<Owner, "set"> {
  const { manager, apiVersion: version, subresource, time } = who;
  return { manager: manager || "unknown", applied, version, subresource: subresource || undefined, time };
}

function idOf(who: Who, applied: boolean): string {
  return ownerId(newOwner(who, applied));
}

/** A client may edit managedFields through the main endpoint; one that does not know them, or garbles them, changes nothing. */
function startingOwners(live: KubeObject | undefined, next: KubeObject, who: Who): Owners {
  const given = next.metadata.managedFields;
  if (!who.subresource) {
    if (asksForReset(given)) return new Map();
    // Most clients send back what they read.
    const owners = equalJson(given, live?.metadata.managedFields) ? undefined : readEntries(given);
    if (owners !== undefined && owners.size > 0) return owners;
  }
  return storedEntries(live);
}

/** Entries of another API group describe another shape: they are kept as they are. */
function byGroup(owners: Owners, who: Who): { ours: Owners; foreign: Owners } {
  const { group } = parseGroupVersion(who.apiVersion);
  const isOurs = (owner: Owner) => owner.version === who.apiVersion || parseGroupVersion(owner.version).group === group;
  if ([...owners.values()].every(isOurs)) return { ours: owners, foreign: new Map() };
  return {
    ours: new Map([...owners].filter(([, owner]) => isOurs(owner))),
    foreign: new Map([...owners].filter(([, owner]) => !isOurs(owner))),
  };
}

function ownersFrom(managers: Managers, before: Owners, foreign: Owners, who: Who): Map<string, Owner> {
  const after = new Map<string, Owner>(foreign);
  for (const [id, owned] of managers) {
    const known = before.get(id);
    if (known === owned) after.set(id, known);
    else after.set(id, { ...(known ?? newOwner(who, owned.applied)), ...owned });
  }
  return after;
}

function sameManagers(a: Managers, b: Managers): boolean {
  return a.size === b.size && [...a].every(([id, owned]) => b.get(id) === owned);
}

/** An applier's time is that of its last apply that changed the object or what it owns. */
function withTime(after: Owners, before: Owners, write: { who: Who; changed: boolean }): Owners {
  const id = idOf(write.who, true);
  const mine = after.get(id);
  if (mine === undefined) return after;
  const old = before.get(id);
  const stays = !write.changed && old !== undefined && old.version === mine.version && equalJson(old.set, mine.set);
  return new Map(after).set(id, stays ? old : { ...mine, time: write.who.time });
}

function sameOwners(a: Owners, b: Owners): boolean {
  if (a.size !== b.size) return false;
  for (const [id, owner] of a) {
    const other = b.get(id);
    if (other === undefined || other.version !== owner.version || !equalJson(other.set, owner.set)) return false;
  }
  return true;
}

/** The object without fields that have no owner, for a comparison that has only changes of ownership in it. */
function ownable(object: KubeObject): Record<string, unknown> {
  const view: Record<string, unknown> = {};
  for (const name in object) if (name !== "apiVersion" && name !== "kind") view[name] = object[name];
  const metadata: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(object.metadata)) {
    if (!NEVER_OWNED_METADATA.has(name)) metadata[name] = value;
  }
  view["metadata"] = metadata;
  return view;
}

function sameObject(live: KubeObject, next: KubeObject, owners: Owners): boolean {
  const strip = ({ managedFields: _, resourceVersion: __, ...rest }: ObjectMeta) => rest;
  return (
    sameOwners(owners, storedEntries(live)) &&
    equalJson({ ...live, metadata: strip(live.metadata) }, { ...next, metadata: strip(next.metadata) })
  );
}

function withEntries(object: KubeObject, owners: Owners): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata;
  const entries = writeEntries(owners);
  return { ...object, metadata: entries === undefined ? metadata : { ...metadata, managedFields: entries } };
}
