import type { Names } from "../api/names.ts";
import { groupVersion, type KubeObject, type OwnerReference, type ResourceKind } from "../api/object.ts";
import { RESOURCES } from "../api/resources/all.ts";
import { servedPolicyName } from "../api/resources/policy-names.ts";
import { placesOf } from "../api/resources/resource.ts";
import { findPlace, v3Places } from "../api/resources/v3-places.ts";
import { StatusError } from "../api/status.ts";
import type { Client } from "../cluster/client.ts";
import type { DiscoveredResource } from "../cluster/discovery.ts";
import { isGone, statusError } from "../cluster/failures.ts";
import { collectionPath } from "../cluster/paths.ts";
import { inParallel } from "../kit/in-parallel.ts";
import type { OwnedThroughV3 } from "./observation.ts";

const METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const PAGE_SIZE = 1000;
const KINDS_AT_ONCE = 4;

/** One object that has a reference, as it was when it was read: the positions in its list are what a patch needs. */
export interface OwnedObject {
  kind: ResourceKind;
  metadata: KubeObject["metadata"];
}

/** Everything in the cluster that names a v3 resource as its owner, whatever kind it is. Reads metadata only, page by page. */
export async function ownedThroughV3(
  client: Client,
  names: Names,
  options: { signal?: AbortSignal } = {},
): Promise<OwnedThroughV3[]> {
  return (await ownedObjects(client, names, options)).flatMap((object) => referencesIn(object, names));
}

/** One entry for each reference that is written down. A v3 resource is written down as people know it, wherever it was found. */
export function referencesIn({ kind, metadata }: OwnedObject, names: Names): OwnedThroughV3[] {
  const { namespace, uid = "" } = metadata;
  const v3 = findPlace(v3Places(names), groupVersion(kind), kind.kind);
  const place = v3?.served ?? kind;
  const name = v3?.tiered ? servedPolicyName(metadata.name) : metadata.name;
  const object = { apiVersion: groupVersion(place), kind: place.kind, namespace, name, uid };
  return v3References(metadata, names).map((reference) => ({ ...object, reference }));
}

/** The objects themselves, in a stable order. */
export async function ownedObjects(
  client: Client,
  names: Names,
  { signal }: { signal?: AbortSignal } = {},
): Promise<OwnedObject[]> {
  const kinds = listedKinds(await client.resources(), names);
  const found = new Map<string, OwnedObject>();
  await inParallel(kinds, KINDS_AT_ONCE, async (kind) => {
    const mustAnswer = kind.group === names.groups.served.group;
    for await (const page of metadataPages(client, kind, { signal, mustAnswer })) {
      for (const metadata of page) {
        const object = { kind, metadata };
        if (v3References(metadata, names).length > 0) found.set(keyOf(object), object);
      }
    }
  });
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
}

/** The references that will not hold after the change of UIDs: those to the v3 group as people use it, of any version. */
export function v3References(metadata: KubeObject["metadata"], names: Names): OwnerReference[] {
  const { group } = names.groups.served;
  return (metadata.ownerReferences ?? []).filter(({ apiVersion }) => apiVersion.startsWith(`${group}/`));
}

/**
 * Each object once. What is served under two groups is listed under one: v3 resources where people use them, because only
 * there the references of one v3 resource to another mean what they say, and as they are stored where nothing serves them.
 */
function listedKinds(resources: readonly DiscoveredResource[], names: Names): ResourceKind[] {
  const listable = resources.filter(
    ({ verbs, preferred }) => preferred && verbs.includes("list") && verbs.includes("patch"),
  );
  const has = (kind: ResourceKind) => listable.some((one) => one.group === kind.group && one.plural === kind.plural);
  const shownTwice = new Set(
    RESOURCES.filter(({ api }) => api === "v3")
      .map((resource) => placesOf(resource, names))
      .filter(({ served }) => has(served))
      .map(({ stored }) => `${stored.group}/${stored.plural}`),
  );
  return listable.filter(
    // Events of the old group are those of the new one.
    ({ group, plural }) => !shownTwice.has(`${group}/${plural}`) && !(group === "" && plural === "events"),
  );
}

export interface Reading {
  signal: AbortSignal | undefined;
  /** False: the garbage collector cannot look there either, so a kind that does not answer is passed over. */
  mustAnswer: boolean;
}

/** Metadata of everything of one kind, page by page. */
export async function* metadataPages(
  client: Client,
  kind: ResourceKind,
  reading: Reading,
): AsyncGenerator<KubeObject["metadata"][]> {
  let next: string | undefined;
  do {
    const page = await metadataPage(client, kind, next, reading);
    if (page === undefined) return;
    yield page.items;
    next = page.next;
  } while (next !== undefined);
}

interface Page {
  items: KubeObject["metadata"][];
  next: string | undefined;
}

async function metadataPage(
  client: Client,
  kind: ResourceKind,
  from: string | undefined,
  { signal, mustAnswer }: Reading,
): Promise<Page | undefined> {
  const query = { limit: String(PAGE_SIZE), continue: from };
  try {
    return await request(client, kind, query, signal);
  } catch (error) {
    if (!mustAnswer && isUnlistable(error)) return undefined;
    // The pages outlived the server's history; what was read already is read again, and deduplicated by its key.
    if (isGone(error) && from !== undefined) return await request(client, kind, {}, signal);
    throw error;
  }
}

async function request(
  client: Client,
  kind: ResourceKind,
  query: Record<string, string | undefined>,
  signal: AbortSignal | undefined,
): Promise<Page> {
  const headers = { accept: METADATA_ONLY };
  const response = await client.raw({ method: "GET", path: collectionPath(kind), query, headers, signal });
  const text = await response.text();
  if (response.status >= 300) throw statusError(response.status, text);
  const list = JSON.parse(text) as { metadata?: { continue?: string }; items?: KubeObject[] | null };
  return { items: (list.items ?? []).map(({ metadata }) => metadata), next: list.metadata?.continue || undefined };
}

/** Gone since it was discovered, not to be listed, or its server is away. */
function isUnlistable(error: unknown): boolean {
  return error instanceof StatusError && [404, 405, 503].includes(error.code);
}

function keyOf({ kind, metadata }: OwnedObject): string {
  return `${groupVersion(kind)} ${kind.kind} ${metadata.namespace ?? ""} ${metadata.name}`;
}
