import { readFileSync } from "node:fs";
import { parse } from "yaml";
import type { KubeObject, ObjectRef } from "../../../api/object.ts";
import type { V3Place } from "../../../api/resources/v3-places.ts";
import type { JsonPatchOperation } from "../../../cluster/client.ts";
import { isNotFound } from "../../../cluster/failures.ts";
import type { Plan } from "../../../procedures/plan.ts";
import { refuseOtherVersions } from "../../../procedures/resources/cluster-version.ts";
import { errors } from "../../../procedures/resources/errors.ts";
import { findKind } from "../../../procedures/resources/find-kind.ts";
import { isTierMissing } from "../../../procedures/resources/guard-resource.ts";
import { type ReadObject, readDocuments } from "../../../procedures/resources/read-documents.ts";
import { printedName, type ResourcePatch, type Written } from "../../../procedures/resources/resource-store.ts";
import { placeOf } from "../../../procedures/resources/validate-resource.ts";
import { errors as usage } from "../../errors.ts";
import type { Session } from "../../session.ts";
import type { ProcedureFlags } from "../runs/procedure.flags.ts";
import { type Resources, type StoreFlags, withResources } from "./open-resources.ts";
import { type Found, printObjects } from "./resources.print.ts";

interface Selecting {
  selector?: string;
  all?: true;
  allNamespaces?: true;
  ignoreNotFound?: true;
  filename?: string[];
  recursive?: true;
  dryRun?: "client" | "server" | true;
}

type Words = string | string[] | undefined;

export async function get(session: Session, flags: StoreFlags & Selecting, given: Words): Promise<void> {
  await withResources(session, flags, async (resources) => {
    const asked = targetsOf(wordsOf(given), resources);
    const single = asked.length === 1 && asked[0]?.name !== undefined;
    const found = await select(resources, asked, flags);
    const namespaces = flags.allNamespaces === true;
    if (found.length > 0 || session.flags.output === "json" || session.flags.output === "yaml") {
      return await printObjects(session, found, { single, namespaces });
    }
    if (!session.flags.quiet && !flags.ignoreNotFound)
      session.err(`no resources found${namespaces ? "" : placeText(resources, asked)}\n`);
  });
}

function placeText({ namespace }: Resources, asked: readonly Asked[]): string {
  return asked.some(({ place }) => place.served.namespaced) ? ` in namespace ${namespace}` : "";
}

export async function apply(
  session: Session,
  flags: StoreFlags & Selecting & ProcedureFlags & { forceConflicts?: true },
): Promise<void> {
  const read = await readFiles(session, flags);
  const plan = read.find(({ object }) => object.kind === "Plan");
  if (plan) return await applySaved(session, flags, read, plan);
  await withResources(session, flags, async (resources) => {
    const found = read.map((one) => located(one, resources));
    const force = flags.forceConflicts ?? false;
    const write = (dryRun: boolean) => (one: Found) => resources.store.apply(one.place, one.object, { dryRun, force });
    await checkThenWrite(session, flags, resources, found, write);
  });
}

/** A saved plan is a file like any other: it is run, or refused, as a whole. */
async function applySaved(
  session: Session,
  flags: ProcedureFlags,
  read: readonly ReadObject[],
  plan: ReadObject,
): Promise<void> {
  if (read.length > 1) throw errors.RESOURCE_FILE_BAD(plan.where, "a plan is applied alone");
  const { applyPlan } = await import("../runs/run-procedure.ts");
  await applyPlan(session, flags, plan.object as unknown as Plan);
}

export async function remove(session: Session, flags: StoreFlags & Selecting, given: Words): Promise<void> {
  const read = flags.filename ? await readFiles(session, flags) : [];
  const words = wordsOf(given);
  if (read.length > 0 && words.length > 0) throw usage.USAGE("delete takes files or names, not both");
  await withResources(session, flags, async (resources) => {
    const asked: Asked[] =
      read.length > 0
        ? read.map((one) => located(one, resources)).map(({ place, object }) => ({ place, ...object.metadata }))
        : targetsOf(words, resources);
    const whole = asked.some(({ name }) => name === undefined);
    if (whole && !flags.selector && !flags.all) {
      throw usage.USAGE("delete needs names, -l, --all or -f", "add what is to be deleted");
    }
    const found = await select(resources, asked, flags);
    if (!flags.dryRun) await refuseOtherVersions(resources.store, resources.names);
    for (const { place, object } of found) {
      const gone = await resources.store.delete(place, refOf(object), { dryRun: flags.dryRun !== undefined });
      if (gone) say(session, flags, place, object.metadata.name, "deleted");
    }
    if (found.length === 0 && !session.flags.quiet) session.err("no resources found\n");
  });
}

export async function label(
  session: Session,
  flags: StoreFlags & Selecting & { overwrite?: true },
  given: Words,
): Promise<void> {
  const words = wordsOf(given);
  const changes = words.slice(1).filter(isLabelChange).map(labelChange);
  if (changes.length === 0) throw usage.USAGE("label needs at least one KEY=VALUE or KEY-");
  const names = words.filter((word, index) => index === 0 || !isLabelChange(word));
  await withResources(session, flags, async (resources) => {
    const asked = targetsOf(names, resources);
    if (asked.some(({ name }) => name === undefined) && !flags.selector && !flags.all) {
      throw usage.USAGE("label needs names, -l or --all");
    }
    const found = await select(resources, asked, flags);
    if (!flags.overwrite) for (const one of found) refuseTaken(one, changes);
    const patch: ResourcePatch = { type: "merge", patch: { metadata: { labels: Object.fromEntries(changes) } } };
    const write =
      (dryRun: boolean) =>
      ({ place, object }: Found) =>
        resources.store.patch(place, refOf(object), patch, { dryRun });
    await checkThenWrite(session, flags, resources, found, write, "labeled");
  });
}

function refuseTaken({ place, object }: Found, changes: readonly (readonly [string, string | null])[]): void {
  for (const [key, value] of changes) {
    const has = object.metadata.labels?.[key];
    if (value !== null && has !== undefined && has !== value) {
      throw errors.RESOURCE_LABEL_TAKEN(printedName(place, object.metadata.name), key, has);
    }
  }
}

function isLabelChange(word: string): boolean {
  return word.includes("=") || /[A-Za-z0-9]-$/.test(word);
}

const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

function labelChange(word: string): readonly [string, string | null] {
  const equals = word.indexOf("=");
  const [key, value] = equals < 0 ? [word.slice(0, -1), null] : [word.slice(0, equals), word.slice(equals + 1)];
  if (!LABEL_KEY.test(key) || (value !== null && !LABEL_VALUE.test(value))) {
    throw usage.BAD_VALUE("a label", word, "KEY=VALUE or KEY-, of letters, digits and inner - _ .");
  }
  return [key, value];
}

interface PatchFlags extends StoreFlags {
  patch?: string;
  patchFile?: string;
  type: "merge" | "json" | "strategic";
  dryRun?: "client" | "server" | true;
}

export async function patch(session: Session, flags: PatchFlags, given: Words): Promise<void> {
  if (flags.type === "strategic") throw errors.RESOURCE_PATCH_STRATEGIC();
  const change = readPatch(flags);
  await withResources(session, flags, async (resources) => {
    const asked = targetsOf(wordsOf(given), resources);
    const [target, ...more] = asked;
    if (target?.name === undefined || more.length > 0) throw usage.USAGE("patch takes one kind and one name");
    const found = await select(resources, asked, {});
    const write =
      (dryRun: boolean) =>
      ({ place, object }: Found) =>
        resources.store.patch(place, refOf(object), change, { dryRun });
    await checkThenWrite(session, flags, resources, found, write, "patched");
  });
}

function readPatch({ patch: text, patchFile, type }: PatchFlags): ResourcePatch {
  if ((text === undefined) === (patchFile === undefined)) throw usage.USAGE("patch needs either -p or --patch-file");
  const value: unknown = parsePatch(text ?? readPatchFile(patchFile!));
  if (type === "json") {
    if (!Array.isArray(value)) throw errors.RESOURCE_PATCH_BAD("a JSON patch is a list of operations");
    return { type, operations: value as JsonPatchOperation[] };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw errors.RESOURCE_PATCH_BAD("a merge patch is an object");
  }
  return { type: "merge", patch: value };
}

function readPatchFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw errors.RESOURCE_FILE_UNREADABLE(path, (error as Error).message).from(error);
  }
}

function parsePatch(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw errors.RESOURCE_PATCH_BAD((error as Error).message.split("\n", 1)[0]!).from(error);
  }
}

/** All of it is tried without changing anything first, so that a mistake in the last object does not leave the first ones changed. */
async function checkThenWrite(
  session: Session,
  flags: { dryRun?: "client" | "server" | true },
  { store, names }: Resources,
  found: readonly Found[],
  write: (dryRun: boolean) => (one: Found) => Promise<Written>,
  done?: string,
): Promise<void> {
  const dry = flags.dryRun !== undefined;
  if (!dry) await refuseOtherVersions(store, names);
  const checked: Written[] = [];
  // Of one object the write itself is the check; so is each of objects that may need one another.
  if (dry || found.length > 1)
    for (const one of found) checked.push(await write(true)(one).catch(laterThan(found, one)));
  for (const [index, one] of found.entries()) {
    const written = dry ? checked[index]! : await write(false)(one);
    const outcome = written.outcome === "unchanged" && done ? `${done} (no change)` : (done ?? written.outcome);
    say(session, flags, one.place, written.object.metadata.name, outcome);
    for (const text of written.warnings)
      session.err(`Warning: ${printedName(one.place, written.object.metadata.name)}: ${text}\n`);
  }
}

/** A policy may come in the same file as its tier: that it is missing now is no mistake. */
function laterThan(found: readonly Found[], one: Found): (error: unknown) => Written {
  return (error) => {
    const tiers = found.some(({ place }) => place.noun === "tier");
    if (tiers && one.place.tiered && isTierMissing(error)) {
      return { object: one.object, outcome: "created", warnings: [] };
    }
    throw error;
  };
}

function say(session: Session, flags: { dryRun?: unknown }, place: V3Place, name: string, outcome: string): void {
  const printed = printedName(place, name);
  const dry = flags.dryRun === undefined ? {} : { dryRun: true };
  const { output } = session.flags;
  if (output === "name") session.out(`${printed}\n`);
  else if (output === "json") session.out(`${JSON.stringify({ event: "resource", name: printed, outcome, ...dry })}\n`);
  else session.out(`${printed} ${outcome}${flags.dryRun === undefined ? "" : " (dry run)"}\n`);
}

interface Asked {
  place: V3Place;
  name?: string;
  namespace?: string;
}

/** `gnp a b`, `gnp,tier`, `gnp/a tier/b`. */
function targetsOf([first, ...names]: readonly string[], resources: Resources): Asked[] {
  if (first === undefined) throw usage.USAGE("name a kind of v3 resource");
  if (first.includes("/")) {
    return [first, ...names].map((word) => {
      const [kind = "", name = "", ...more] = word.split("/");
      if (name === "" || more.length > 0) throw usage.USAGE(`"${word}" is not KIND/NAME`);
      return { place: findKind(kind, resources.names), name };
    });
  }
  const places = first.split(",").map((kind) => findKind(kind, resources.names));
  if (names.length > 0 && places.length > 1) throw usage.USAGE("names go with one kind; use KIND/NAME for several");
  return names.length === 0 ? places.map((place) => ({ place })) : names.map((name) => ({ place: places[0]!, name }));
}

async function select({ store, namespace }: Resources, asked: readonly Asked[], flags: Selecting): Promise<Found[]> {
  const named = asked.some(({ name }) => name !== undefined);
  if (named && flags.selector) throw usage.USAGE("names and -l exclude each other");
  if (named && flags.allNamespaces) throw usage.USAGE("names and -A exclude each other");
  const found: Found[] = [];
  const missing: string[] = [];
  for (const { place, name, namespace: own } of asked) {
    const inside = place.served.namespaced ? (own ?? namespace) : undefined;
    if (name === undefined) {
      const options = { ...(flags.allNamespaces ? {} : { namespace: inside }), labelSelector: flags.selector };
      const objects = await store.list(place, defined(options)).catch((error: unknown) => {
        // A list is not found where its kind is not served.
        if (isNotFound(error))
          throw errors.RESOURCE_KIND_NOT_SERVED(`${place.served.plural}.${place.served.group}`).from(error);
        throw error;
      });
      found.push(...objects.map((object) => ({ place, object })));
      continue;
    }
    const object = await store.get(place, { name, ...(inside && { namespace: inside }) });
    if (object) found.push({ place, object });
    else missing.push(printedName(place, name));
  }
  if (missing.length > 0 && !flags.ignoreNotFound) throw errors.RESOURCE_NOT_FOUND(missing.join(", "));
  return found;
}

function defined<T extends Record<string, string | undefined>>(given: T): Record<string, string> {
  return Object.fromEntries(Object.entries(given).filter((pair): pair is [string, string] => pair[1] !== undefined));
}

function refOf({ metadata }: KubeObject): ObjectRef {
  const { name, namespace } = metadata;
  return { name, ...(namespace !== undefined && { namespace }) };
}

async function readFiles(session: Session, { filename, recursive }: Selecting): Promise<ReadObject[]> {
  if (!filename) throw usage.USAGE("-f is missing", "name a file, a folder, or - for standard input");
  const { input } = session;
  return await readDocuments(filename, { recursive: recursive ?? false, ...(input && { stdin: input }) });
}

/** Which resource it is, and in which namespace. */
function located({ object, where }: ReadObject, { names, namespace }: Resources): Found {
  const place = placeOf(object, names);
  if (!place)
    throw errors.RESOURCE_FILE_BAD(where, `${object.kind} in ${object.apiVersion} is no v3 resource; use kubectl`);
  const { served } = place;
  const { namespace: own, ...metadata } = object.metadata;
  if (!served.namespaced && own) throw errors.RESOURCE_FILE_BAD(where, `a ${served.kind} belongs to no namespace`);
  const placed = { ...metadata, ...(served.namespaced && { namespace: own ?? namespace }) };
  return {
    place,
    object: { ...object, apiVersion: `${served.group}/${served.version}`, kind: served.kind, metadata: placed },
  };
}

function wordsOf(given: Words): string[] {
  return given === undefined ? [] : Array.isArray(given) ? given : [given];
}
