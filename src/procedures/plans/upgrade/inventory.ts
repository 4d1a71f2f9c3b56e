import type { Names, Noun } from "../../../api/names.ts";
import type { KubeObject } from "../../../api/object.ts";
import { RESOURCES } from "../../../api/resources/all.ts";
import { DATAPLANE_SETTINGS, type Setting } from "../../../api/resources/dataplane-settings.ts";
import { placesOf } from "../../../api/resources/resource.ts";
import type { CustomResourceDefinition } from "../../../api/schema/crd.ts";
import { type Consequence, FATES, type Fate } from "../../../api/tables/fate.ts";
import { FIXED_VALUES } from "../../../api/tables/fixed-values.ts";
import { REFUSED_FIELDS } from "../../../api/tables/refused-fields.ts";
import { parseVersion, sameLine } from "../../../api/tables/version.ts";
import { BGP_KINDS, REMOVED_KINDS } from "../../../releases/not-carried/kinds.ts";
import { UNCARRIED_VALUES } from "../../../releases/not-carried/values.ts";
import { nameOf, targetOf } from "../../actions/objects/target.ts";
import { fieldAt } from "../../field-at.ts";
import type { Observation } from "../../observation.ts";
import { type SchemaLoss, schemaLosses } from "./schema-losses.ts";
import { settingsNotCarried } from "./settings-inventory.ts";
import { errors } from "./upgrade-errors.ts";

/** Something stored or set that the new release does not carry, and what becomes of it. */
export interface InventoryItem extends Consequence {
  /** `BGPPeer`, `IPPool.spec.ipipMode`, `DATAPLANE_LOGPREFIX`: what `--accept-loss` takes. */
  name: string;
  /** Who has it, and the value where that is short. */
  found: readonly string[];
  /** Lost, and accepted by name. */
  accepted?: true;
}

/** One place where something was found, before places are put together by name. */
export type Found = Consequence & { name: string; at: string };

export interface InventoryOptions {
  /** Names of losses that were accepted. */
  accepted?: readonly string[];
  /** The release that runs, where the cluster does not say it. */
  from?: string;
}

/**
 * Everything that is stored or set for the service and that the new release does not carry, the gravest first. `definitions` are the new
 * release's CRDs. Pure: what was not read (`observation.stored`) is not listed.
 */
export function inventoryOf(
  observation: Observation,
  definitions: readonly CustomResourceDefinition[],
  { accepted = [], from = observation.service.version }: InventoryOptions = {},
): InventoryItem[] {
  const { stored, names, tool } = observation;
  // Of another service's release we know its CRDs, and nothing of what its programs do; a release of our line loses nothing that ours would.
  const knowsPrograms = names.dialect === "vendor" && !isSameLine(from, tool.version);
  const objects = stored?.objects ?? [];
  const bgp = objects.some((object) => nounOf(object, names) === "installation" && enablesBgp(object));
  const ofObjects = objects.flatMap((object) => {
    const idle = knowsPrograms && !bgp ? withoutBgp(object, names) : undefined;
    return idle ? [idle] : objectNotCarried(object, names, definitions, knowsPrograms);
  });
  const others = knowsPrograms ? settingsNotCarried(observation) : [];
  return asInventory([...ofObjects, ...others], accepted);
}

/** What was found, put together by name; of what is lost, what was accepted is marked. */
export function asInventory(found: readonly Found[], accepted: readonly string[]): InventoryItem[] {
  return together(found).map((item) =>
    item.fate === "lost" && accepted.includes(item.name) ? { ...item, accepted: true as const } : item,
  );
}

/** A name that accepts nothing is a typing error, and would hide that something else is not accepted. */
export function refuseUnknownLosses(inventory: readonly InventoryItem[], accepted: readonly string[]): void {
  const lost = inventory.filter(({ fate }) => fate === "lost").map(({ name }) => name);
  const unknown = accepted.find((name) => !lost.includes(name));
  if (unknown !== undefined) throw errors.UPGRADE_LOSS_UNKNOWN(unknown, lost);
}

function isSameLine(from: string | undefined, to: string): boolean {
  const [there, here] = [parseVersion(from ?? ""), parseVersion(to)];
  return there !== undefined && here !== undefined && sameLine(there, here);
}

/** What keeps an upgrade from starting. */
export function blockingItems(inventory: readonly InventoryItem[]): InventoryItem[] {
  return inventory.filter(({ fate, accepted }) => fate === "blocks" || (fate === "lost" && !accepted));
}

function together(found: readonly Found[]): InventoryItem[] {
  const items = new Map<string, InventoryItem & { found: string[] }>();
  for (const { name, at, fate, why, todo } of found) {
    // The same field may ask for different things: each is a line of its own.
    const key = `${name} ${fate} ${why}`;
    const item = items.get(key) ?? { name, fate, found: [], why, todo };
    if (!item.found.includes(at)) item.found.push(at);
    items.set(key, item);
  }
  const rank = (fate: Fate) => FATES.indexOf(fate);
  return [...items.values()].sort((a, b) => rank(a.fate) - rank(b.fate) || (a.name < b.name ? -1 : 1));
}

function objectNotCarried(
  object: KubeObject,
  names: Names,
  definitions: readonly CustomResourceDefinition[],
  knowsPrograms: boolean,
): Found[] {
  const group = object.apiVersion.split("/")[0] as string;
  const inGroup = definitions.filter(({ spec }) => spec.group === group);
  const definition = inGroup.find(({ spec }) => spec.names.kind === object.kind);
  if (!definition) return ofRemovedKind(object, { knowsPrograms, known: inGroup.length > 0 });
  const version = definition.spec.versions.find(({ storage }) => storage) ?? definition.spec.versions[0];
  const losses = version ? schemaLosses(object, version.schema.openAPIV3Schema) : [];
  const noun = names.dialect === "vendor" ? nounOf(object, names) : undefined;
  const values = noun && knowsPrograms ? valuesNotCarried(object, noun, names) : [];
  const told = new Set(values.map(({ name }) => name));
  return [
    ...values,
    ...losses.map((loss) => ofLoss(object, loss, { noun, knowsPrograms })).filter(({ name }) => !told.has(name)),
    ...(noun && knowsPrograms ? fixedOtherwise(object, noun).filter(({ name }) => !told.has(name)) : []),
  ];
}

function enablesBgp(object: KubeObject): boolean {
  return fieldAt(object, "spec.vendorNetwork.bgp") === "Enabled";
}

/** What becomes of an object of BGP where the Installation does not enable it; undefined: it is no such object. */
function withoutBgp(object: KubeObject, names: Names): Found | undefined {
  const noun = nounOf(object, names);
  const row = BGP_KINDS.find((one) => one.noun === noun);
  return row && ofKind(object, row);
}

function ofKind(object: KubeObject, { fate, why, todo, idle }: Consequence & { idle?: readonly string[] }): Found {
  const at = nameOf(targetOf(object));
  const set = Object.keys((object["spec"] ?? {}) as object);
  if (idle && set.every((field) => idle.includes(field))) {
    return { name: object.kind, at, fate: "stays", why: "It changes nothing of the defaults.", todo: "Nothing." };
  }
  return { name: object.kind, at, fate, why, todo };
}

/** Within a line the kind was of no effect before, and is of none after. */
function ofRemovedKind(
  object: KubeObject,
  { knowsPrograms, known }: { knowsPrograms: boolean; known: boolean },
): Found[] {
  const at = nameOf(targetOf(object));
  const row = REMOVED_KINDS.find(({ kind, group }) => kind === object.kind && (known || typeof group !== "string"));
  if (row && !knowsPrograms) return [];
  if (!row && !known) return [];
  if (!row) {
    const why = "The new release has no such kind: objects of it stay and do nothing.";
    return [{ name: object.kind, at, fate: "lost", why, todo: "Delete them, or accept the loss." }];
  }
  return [ofKind(object, row)];
}

function ofLoss(
  object: KubeObject,
  { path, value, is }: SchemaLoss,
  { noun, knowsPrograms }: { noun: Noun | undefined; knowsPrograms: boolean },
): Found {
  const name = `${object.kind}.${path}`;
  const at = placeOf(object, value);
  const row = noun && is === "absent" ? REFUSED_FIELDS[noun]?.[path] : undefined;
  if (row && !knowsPrograms) {
    const why = "The field goes; it has no effect in the release that runs either.";
    return { name, at, fate: "changes", why, todo: "Nothing." };
  }
  if (row?.idle?.includes(value)) {
    const why = "The field goes; it requests what this release does without it.";
    return { name, at, fate: "changes", why, todo: "Nothing." };
  }
  if (row) return { name, at, fate: row.fate, why: row.why, todo: row.todo };
  if (is === "refused") {
    const why = "The new release's CRD refuses this value, and with it every change of the object.";
    return { name, at, fate: "blocks", why, todo: "Change it first." };
  }
  const why = "The new release's CRD does not have this field: the API server drops it once the CRD is applied.";
  return { name, at, fate: "lost", why, todo: "Remove the field, or accept the loss." };
}

function valuesNotCarried(object: KubeObject, noun: Noun, names: Names): Found[] {
  return UNCARRIED_VALUES.filter((row) => row.noun === noun).flatMap((row) => {
    const values = valuesAt(object, row.path.split("."));
    const hit = values.find((value) => (row.values ? row.values.includes(value) : !isEmpty(value)));
    if (hit === undefined) return [];
    const todo = row.patch ? `${row.todo} ${patchOf(object, noun, row.patch, names)}` : row.todo;
    return [{ name: `${object.kind}.${row.path}`, at: placeOf(object, hit), fate: row.fate, why: row.why, todo }];
  });
}

/** Fields that have one value here, and another one there. */
function fixedOtherwise(object: KubeObject, noun: Noun): Found[] {
  const spec = (object["spec"] ?? {}) as Record<string, unknown>;
  const others = Object.entries(FIXED_VALUES[noun] ?? {}).flatMap(([path, { value: only, because: why }]): Found[] => {
    const value = fieldAt(object, path);
    if (value === undefined || value === only) return [];
    const at = placeOf(object, value);
    return [{ name: `${object.kind}.${path}`, at, fate: "changes", why, todo: "Remove the field." }];
  });
  if (noun !== "dataplaneConfiguration") return others;
  return Object.entries(DATAPLANE_SETTINGS as Record<string, Setting>).flatMap(([field, { fixed }]): Found[] => {
    const value = spec[field];
    if (!fixed || value === undefined || value === fixed.value) return [];
    const at = placeOf(object, value);
    return [
      { name: `${object.kind}.spec.${field}`, at, fate: fixed.fate, why: fixed.because, todo: "Remove the field." },
    ];
  });
}

function valuesAt(value: unknown, path: readonly string[]): unknown[] {
  if (Array.isArray(value)) return value.flatMap((item) => valuesAt(item, path));
  const [first, ...rest] = path;
  if (first === undefined) return [value];
  if (typeof value !== "object" || value === null) return [];
  const inner = (value as Record<string, unknown>)[first];
  return inner === undefined ? [] : valuesAt(inner, rest);
}

const isEmpty = (value: unknown) => value === "" || (Array.isArray(value) && value.length === 0);

const SHORT = 40;

/** `IPPool old (Always)`. */
function placeOf(object: KubeObject, value: unknown): string {
  const text = typeof value === "object" ? "" : JSON.stringify(value);
  return `${nameOf(targetOf(object))}${text === "" || text.length > SHORT ? "" : ` (${text})`}`;
}

function patchOf({ metadata }: KubeObject, noun: Noun, patch: object, names: Names): string {
  const { group, plural } = placesOf(resourceOf(noun), names).stored;
  return `kubectl patch ${plural}.${group} ${metadata.name} --type merge -p '${JSON.stringify(patch)}'`;
}

const resourceOf = (noun: Noun) => RESOURCES.find((resource) => resource.noun === noun)!;

function nounOf({ apiVersion, kind }: KubeObject, names: Names): Noun | undefined {
  const group = apiVersion.split("/")[0];
  return RESOURCES.find((resource) => {
    const { stored } = placesOf(resource, names);
    return stored.group === group && stored.kind === kind;
  })?.noun;
}
