import { createHash } from "node:crypto";
import { groupVersion } from "../api/object.ts";
import type { ServedKind } from "./resource.ts";

/** One served subresource beyond `status` and `scale`: `pods/log`, `serviceaccounts/token`. */
export interface ServedSubresource {
  /** `plural/subresource` */
  path: string;
  kind: { group: string; version: string; kind: string };
  verbs: readonly string[];
}

/** A group served by another server behind an APIService, as that server described it. */
export interface ForeignGroupVersion {
  group: string;
  version: string;
  /** An `APIResourceList`'s resources; undefined while that server does not answer. */
  resources: readonly Record<string, unknown>[] | undefined;
  /** Groups are listed highest first; what a short name means is decided by the first that has it. */
  priority: number;
  openApi: ForeignOpenApi | undefined;
}

/** What another server says of its types: where its v3 document is, and its part of the v2 document. */
export interface ForeignOpenApi {
  serverRelativeURL: string;
  paths: Readonly<Record<string, Record<string, unknown>>>;
  definitions: Readonly<Record<string, Record<string, unknown>>>;
}

export interface DiscoveryInput {
  kinds: readonly ServedKind[];
  subresources: Readonly<Record<string, readonly ServedSubresource[]>>;
  foreign: readonly ForeignGroupVersion[];
}

interface VersionDocument {
  version: string;
  resources: Record<string, unknown>[];
  stale: boolean;
}

/** `groupPriorityMinimum` of what is served here: Kubernetes' own groups before custom resources. */
export const OWN_PRIORITY = 17_800;
export const CUSTOM_PRIORITY = 1000;

/** All of discovery, old style and aggregated, from the kinds served now. */
export class Discovery {
  /** group -> versions, preferred first. */
  readonly #groups = new Map<string, VersionDocument[]>();
  readonly #priorities = new Map<string, number>();
  readonly #serverAddress: string;

  constructor(input: DiscoveryInput, serverAddress: string) {
    this.#serverAddress = serverAddress;
    for (const kind of input.kinds) {
      const versions = this.#versionsOf(kind.group, kind.custom ? CUSTOM_PRIORITY : OWN_PRIORITY);
      const entries = resourceEntries(kind, input.subresources);
      const document = versions.find((one) => one.version === kind.version);
      if (document) document.resources.push(...entries);
      else versions.push({ version: kind.version, resources: entries, stale: false });
    }
    for (const { group, version, resources, priority } of input.foreign) {
      this.#versionsOf(group, priority).push({
        version,
        resources: [...(resources ?? [])],
        stale: resources === undefined,
      });
    }
    for (const versions of this.#groups.values()) versions.sort((a, b) => compareVersions(a.version, b.version));
  }

  #versionsOf(group: string, priority: number): VersionDocument[] {
    this.#priorities.set(group, Math.max(priority, this.#priorities.get(group) ?? 0));
    const known = this.#groups.get(group);
    if (known) return known;
    const versions: VersionDocument[] = [];
    this.#groups.set(group, versions);
    return versions;
  }

  /** `/api` */
  coreVersions(): unknown {
    return {
      kind: "APIVersions",
      versions: (this.#groups.get("") ?? []).map(({ version }) => version),
      serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: this.#serverAddress }],
    };
  }

  /** `/apis` */
  groupList(): unknown {
    const groups = this.#namedGroups().map(([group]) => this.#groupDocument(group));
    return { kind: "APIGroupList", apiVersion: "v1", groups };
  }

  /** `/apis/GROUP` */
  group(group: string): unknown {
    const document = this.#groups.has(group) && group !== "" ? this.#groupDocument(group) : undefined;
    return document && { kind: "APIGroup", apiVersion: "v1", ...document };
  }

  #groupDocument(group: string): Record<string, unknown> {
    const versions = this.#groups.get(group)!.map(({ version }) => ({ groupVersion: `${group}/${version}`, version }));
    return { name: group, versions, preferredVersion: versions[0] };
  }

  /** `/api/v1`, `/apis/GROUP/VERSION` */
  resourceList(group: string, version: string): unknown {
    const document = this.#groups.get(group)?.find((one) => one.version === version);
    if (!document || document.stale) return undefined;
    const resources = document.resources;
    return { kind: "APIResourceList", apiVersion: "v1", groupVersion: groupVersion({ group, version }), resources };
  }

  /** The one-request form newer clients ask for at `/api` (core) and `/apis` (the rest). */
  aggregated(root: "api" | "apis", version: string): { body: string; etag: string } {
    const groups = root === "api" ? [["", this.#groups.get("") ?? []] as const] : this.#namedGroups();
    const items = groups.map(([group, versions]) => ({
      metadata: { name: group, creationTimestamp: null },
      versions: versions.map((one) => aggregatedVersion(one)),
    }));
    const apiVersion = `apidiscovery.k8s.io/${version}`;
    const body = JSON.stringify({ kind: "APIGroupDiscoveryList", apiVersion, metadata: {}, items });
    return { body, etag: `"${createHash("sha256").update(body).digest("hex").toUpperCase()}"` };
  }

  #namedGroups(): [string, VersionDocument[]][] {
    const priority = (group: string) => this.#priorities.get(group) ?? 0;
    return [...this.#groups].filter(([group]) => group !== "").sort(([a], [b]) => priority(b) - priority(a));
  }
}

function resourceEntries(kind: ServedKind, subresources: DiscoveryInput["subresources"]): Record<string, unknown>[] {
  const { plural: name, singular: singularName, namespaced, verbs } = kind;
  const base = { namespaced, kind: kind.kind };
  const main: Record<string, unknown> = { name, singularName, ...base, verbs: [...verbs].sort() };
  if (kind.shortNames.length > 0) main["shortNames"] = kind.shortNames;
  if (kind.categories.length > 0) main["categories"] = kind.categories;
  main["storageVersionHash"] = createHash("sha256").update(`${kind.group}/${kind.kind}`).digest("base64").slice(0, 8);
  const writable = ["get", "patch", "update"];
  const entries = [main];
  if (kind.status) entries.push({ name: `${name}/status`, singularName: "", ...base, verbs: writable });
  if (kind.scale) {
    const scale = { group: "autoscaling", version: "v1", kind: "Scale" };
    entries.push({ name: `${name}/scale`, singularName: "", namespaced, ...scale, verbs: writable });
  }
  for (const sub of subresources[`${kind.group}/${name}`] ?? []) {
    entries.push({ name: sub.path, singularName: "", namespaced, ...sub.kind, verbs: sub.verbs });
  }
  return entries;
}

/** Regroups an APIResourceList: subresources move below the resource they belong to. */
function aggregatedVersion({ version, resources, stale }: VersionDocument): Record<string, unknown> {
  const mains = resources.filter((entry) => !String(entry["name"]).includes("/"));
  return {
    version,
    freshness: stale ? "Stale" : "Current",
    resources: mains.map((entry) => ({
      resource: entry["name"],
      responseKind: responseKind(entry),
      scope: entry["namespaced"] ? "Namespaced" : "Cluster",
      singularResource: entry["singularName"],
      verbs: entry["verbs"],
      ...(entry["shortNames"] ? { shortNames: entry["shortNames"] } : {}),
      ...(entry["categories"] ? { categories: entry["categories"] } : {}),
      ...subresourcesOf(String(entry["name"]), resources),
    })),
  };
}

function subresourcesOf(name: string, resources: readonly Record<string, unknown>[]): Record<string, unknown> {
  const found = resources.filter((entry) => String(entry["name"]).startsWith(`${name}/`));
  if (found.length === 0) return {};
  const subresources = found.map((entry) => ({
    subresource: String(entry["name"]).slice(name.length + 1),
    responseKind: responseKind(entry),
    verbs: entry["verbs"],
  }));
  return { subresources };
}

function responseKind(entry: Record<string, unknown>): Record<string, unknown> {
  return { group: entry["group"] ?? "", version: entry["version"] ?? "", kind: entry["kind"] };
}

const KUBE_VERSION = /^v(\d+)(?:(alpha|beta)(\d+))?$/;

/** Newest stable first, then beta, then alpha, then anything else by name: the order Kubernetes prefers. */
function compareVersions(a: string, b: string): number {
  const [left, right] = [rank(a), rank(b)];
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return right[i]! - left[i]!;
  return a < b ? -1 : 1;
}

function rank(version: string): number[] {
  const match = KUBE_VERSION.exec(version);
  if (!match) return [0, 0, 0];
  const stability = match[2] === undefined ? 3 : match[2] === "beta" ? 2 : 1;
  return [stability, Number(match[1]), Number(match[3] ?? 0)];
}
