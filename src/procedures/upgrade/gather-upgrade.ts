import { stringify } from "yaml";
import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { CustomResourceDefinition } from "../../api/schema/crd.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../cluster/client.ts";
import { isConflict } from "../../cluster/failures.ts";
import { findRelease } from "../../releases/old-release.ts";
import { digestOf, openReleaseFiles } from "../../releases/open-release-files.ts";
import { publishedText } from "../../releases/published-text.ts";
import type { ReleaseFiles } from "../../releases/release-files.ts";
import { MANAGER } from "../actions/objects/adopt-fields.ts";
import { kindInAnyVersion, kindOf, nameOf, targetOf, undefinedIfNotFound } from "../actions/objects/target.ts";
import { LAST_APPLIED } from "../last-applied.ts";
import { appliedObject } from "../merge/live-edits.ts";
import { manifestDocuments } from "../merge/manifest-documents.ts";
import { type MergedManifest, mergeManifest } from "../merge/merge-manifest.ts";
import type { Observation } from "../observation.ts";
import type { OtherTools } from "../other-tools.ts";
import { CHART_TOOL } from "../plans/install/install-operator.ts";
import type { FieldTakeover, PublishedRef, UpgradeFacts } from "../plans/upgrade/upgrade.ts";
import { errors } from "../plans/upgrade/upgrade-errors.ts";
import type { UpgradePath } from "../plans/upgrade/upgrade-path.ts";
import { releaseValues } from "./release-values.ts";

/** Inputs of an upgrade in addition to the observation. */
export interface UpgradeSources {
  client: Client;
  files: ReleaseFiles;
  tools: OtherTools;
  signal: AbortSignal;
}

/** Files the person gave, read. */
export interface UpgradeFiles {
  manifest?: { file: string; text: string };
  base?: { file: string; text: string };
  values?: { file: string; text: string };
  chart?: string;
  take: Readonly<Record<string, "mine" | "new">>;
  /** Arguments that select the cluster for the chart tool. */
  connection: readonly string[];
}

export const DEFINITION = "CustomResourceDefinition";
/** Who may have applied a manifest; what others changed afterwards stays theirs. */
const APPLIERS = [
  "kubectl-client-side-apply",
  "kubectl-create",
  "kubectl-replace",
  "kubectl",
  "before-first-apply",
  MANAGER,
];

/** Reads everything an upgrade is decided from, and changes nothing: what the server is asked to try, it only tries. */
export async function gatherUpgrade(
  observation: Observation,
  path: UpgradePath,
  given: UpgradeFiles,
  sources: UpgradeSources,
): Promise<UpgradeFacts> {
  const { names, crds } = observation;
  const { files } = sources;
  const file = path.file === undefined ? undefined : names.manifests[path.file];
  const inManifest = path.method === "manifest" && file !== undefined;
  const definitions = await published(files, inManifest ? file : names.manifests.operatorCrds);
  const behind = crds.filter(({ stored }) => stored.length > 1).map(({ name }) => name);
  const chart = path.method === "chart" ? await chartFacts(observation, given, sources) : undefined;
  const merged = file === undefined ? undefined : await mergedFacts(observation, path, file, given, sources);
  const objects = merged?.objects ?? [];
  const released = definitionsIn(definitions.text);
  const applied = [...released, ...objects];
  const { text: _, ...ref } = definitions;
  return {
    definitions: ref,
    crds: released as CustomResourceDefinition[],
    ...(merged ? { merged } : {}),
    takeOvers: await takeOvers(applied, sources),
    appliers: await appliersOf(objects, sources),
    ...(chart ? { chart } : {}),
    oldApiServer: await hasOldApiServer(observation, sources),
    behind,
  };
}

/** The public operator removes the namespace itself. */
async function hasOldApiServer({ names, service }: Observation, sources: UpgradeSources): Promise<boolean> {
  if (names.dialect !== "vendor" || service.method === "manifest" || !service.apiServer) return false;
  const metadata = { name: names.namespaces.apiServerBeforeV331 };
  return (await readLive({ apiVersion: "v1", kind: "Namespace", metadata }, sources)) !== undefined;
}

export async function published(files: ReleaseFiles, name: string): Promise<PublishedRef & { text: string }> {
  const text = await files.read(name);
  return { name, from: files.from, digest: digestOf(text), text };
}

export function definitionsIn(text: string): KubeObject[] {
  const documents = [...manifestDocuments("the new manifest", text).values()];
  return documents.filter(({ name }) => name.startsWith(`${DEFINITION}/`)).map(({ object }) => object);
}

/** The published file with the user's edits, from their file or from the cluster. */
export async function mergedFacts(
  { names }: Observation,
  path: UpgradePath,
  file: string,
  given: UpgradeFiles,
  sources: UpgradeSources,
): Promise<NonNullable<UpgradeFacts["merged"]>> {
  const { files } = sources;
  const ours = await published(files, file);
  const isGuessed = given.base === undefined && isWithinLine(names, path);
  const base = given.base?.text ?? (await publishedBase(names, path, file, ours.text, sources));
  const theirs = given.manifest ?? { objects: await liveObjects(base, ours.text, sources) };
  const merged = mergeManifest({
    ...{ base, baseGuessed: isGuessed, theirs, ours: ours.text },
    ...{ take: given.take, leave: DEFINITION },
  });
  const { edits, conflicts, comments, dropped, untaken } = merged;
  return {
    edits,
    conflicts,
    comments,
    dropped,
    untaken,
    file,
    from: ours.from,
    digest: ours.digest,
    text: merged.text,
    objects: await withoutSettledSecrets(merged, sources),
    editsFrom: given.manifest?.file ?? "the cluster",
    ...(isGuessed && { baseGuessed: true as const }),
  };
}

/** Files of another release of our own line are not built in. */
function isWithinLine({ dialect }: Names, { from, to, file }: UpgradePath): boolean {
  return dialect === "vendor" && file !== undefined && findRelease(from).is === "notOlder" && from !== to;
}

/** What the version that runs published: ours to know in our own dialect, and otherwise at the same address under its version. */
async function publishedBase(
  names: Names,
  { from, to, file: role }: UpgradePath,
  file: string,
  ours: string,
  { files, signal }: UpgradeSources,
): Promise<string> {
  const found = findRelease(from);
  if (names.dialect === "vendor" && role !== undefined && role !== "policyAndNetworkingTypha") {
    if (found.is === "known") return publishedText(role, found.release, { without: DEFINITION });
    // Within a line the files are taken to differ by their version alone. Where they differ in more, the plan's notes name `--base`.
    if (found.is === "notOlder") return ours.replaceAll(to, found.version);
  }
  // Nothing is upgraded: the same file is on both sides.
  if (from === to) return ours;
  const there = files.from.includes(to) ? files.from.replaceAll(to, from) : undefined;
  if (there === undefined) throw errors.UPGRADE_BASE_MISSING(file, from);
  return await openReleaseFiles({ manifestUrl: there, signal }).read(file);
}

/** The objects of the published manifest, as people have made them in the cluster. */
export async function liveObjects(base: string, ours: string, sources: UpgradeSources): Promise<KubeObject[]> {
  const newer = manifestDocuments("the new manifest", ours);
  const found: KubeObject[] = [];
  for (const [key, { name, object }] of manifestDocuments("the published manifest", base)) {
    const live = name.startsWith(`${DEFINITION}/`) ? undefined : await readLive(object, sources);
    if (live) found.push(appliedObject(live, object, newer.get(key)?.object));
  }
  return found;
}

async function readLive(object: KubeObject, { client, signal }: UpgradeSources): Promise<KubeObject | undefined> {
  const kind = await kindInAnyVersion(client, object);
  return kind && (await client.get<KubeObject>(kind, object.metadata, { signal }).catch(undefinedIfNotFound));
}

/** A Secret that already holds what it should is not applied, so that what it holds is in no plan. */
async function withoutSettledSecrets(merged: MergedManifest, sources: UpgradeSources): Promise<KubeObject[]> {
  const objects: KubeObject[] = [];
  for (const object of merged.objects({ not: DEFINITION })) {
    const live = object.kind === "Secret" ? await readLive(object, sources) : undefined;
    const settled = live && JSON.stringify(sorted(live["data"])) === JSON.stringify(sorted(object["data"]));
    if (!settled) objects.push(object);
  }
  return objects;
}

function sorted(data: unknown): unknown {
  return Object.entries((data ?? {}) as Record<string, string>).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Asks the server, without force, whose fields an apply would take: each is shown before it is forced. */
export async function takeOvers(objects: readonly KubeObject[], sources: UpgradeSources): Promise<FieldTakeover[]> {
  const found: FieldTakeover[] = [];
  for (const object of objects) {
    for (const [owner, fields] of await conflictsOf(object, sources)) {
      found.push({ object: nameOf(targetOf(object)), owner, fields });
    }
  }
  return found;
}

async function conflictsOf(object: KubeObject, { client, signal }: UpgradeSources): Promise<Map<string, string[]>> {
  const byOwner = new Map<string, string[]>();
  const kind = await kindOf(client, object);
  if (!kind) return byOwner;
  try {
    await client.apply(kind, object, { dryRun: true, fieldManager: MANAGER, signal });
  } catch (error) {
    // Another refusal is reported by the step itself.
    if (!isConflict(error) || !(error instanceof StatusError))
      return error instanceof StatusError ? byOwner : rethrow(error);
    for (const { field = "", message = "" } of error.status.details?.causes ?? []) {
      const owner = /conflict with "([^"]+)"/.exec(message)?.[1] ?? "another manager";
      byOwner.set(owner, [...(byOwner.get(owner) ?? []), field.replace(/^\./, "")]);
    }
  }
  return byOwner;
}

function rethrow(error: unknown): never {
  throw error;
}

export async function appliersOf(objects: readonly KubeObject[], sources: UpgradeSources): Promise<string[]> {
  const found = new Set<string>();
  for (const object of objects) {
    const live = object.kind === "Secret" ? undefined : await readLive(object, sources);
    for (const { manager = "", operation, subresource } of live?.metadata.managedFields ?? []) {
      const ours = manager === MANAGER && operation === "Apply";
      if (!subresource && !ours && APPLIERS.includes(manager)) found.add(manager);
    }
    if (live?.metadata.annotations?.[LAST_APPLIED] !== undefined) found.add("kubectl-client-side-apply");
  }
  return [...found].sort();
}

async function chartFacts(
  { service }: Observation,
  { values, chart, connection }: UpgradeFiles,
  { client, tools, signal }: UpgradeSources,
): Promise<NonNullable<UpgradeFacts["chart"]>> {
  const kept = service.release ? await releaseValues(client, service.release, signal) : {};
  return {
    tool: (await tools.find(CHART_TOOL)) !== undefined,
    values: values?.text ?? stringify(kept, { compat: "yaml-1.1" }),
    chart,
    connection,
  };
}
