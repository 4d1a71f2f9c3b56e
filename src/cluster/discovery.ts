import { groupVersion, parseGroupVersion, type ResourceKind } from "../api/object.ts";
import { StatusError } from "../api/status.ts";
import { errors } from "./errors.ts";
import { isNotFound } from "./failures.ts";
import { groupVersionPath } from "./paths.ts";
import type { Sender } from "./sender.ts";

export interface DiscoveredResource extends ResourceKind {
  verbs: string[];
  /** The version the server prefers of its group. */
  preferred: boolean;
}

export interface Discovery {
  resourceFor(type: { apiVersion: string; kind: string }): Promise<ResourceKind>;
  resources(): Promise<DiscoveredResource[]>;
}

/**
 * Asks the aggregated documents first (two requests for everything), and the document of a group version where a server has no
 * aggregated ones or they leave that group version out, as they do while an aggregated API is down.
 */
export function createDiscovery(send: Sender): Discovery {
  const known = new Map<string, ResourceKind>();
  let overview: Promise<unknown> | undefined;

  const remember = (resource: DiscoveredResource) => {
    const { group, version, kind, plural, namespaced } = resource;
    known.set(typeKey(groupVersion(resource), kind), { group, version, kind, plural, namespaced });
  };
  const rememberOverview = async () => {
    for (const resource of (await aggregated(send)) ?? []) remember(resource);
  };

  async function resources(): Promise<DiscoveredResource[]> {
    const found = (await aggregated(send)) ?? (await legacy(send));
    for (const resource of found) remember(resource);
    return found;
  }

  return {
    resources,
    async resourceFor({ apiVersion, kind }) {
      const key = typeKey(apiVersion, kind);
      overview ??= rememberOverview();
      await overview.catch((error: unknown) => {
        overview = undefined;
        throw error;
      });
      const seen = known.get(key);
      if (seen) return seen;
      // Installed since, or on a server without the overview: one document is enough for one kind.
      for (const resource of await groupVersionResources(send, apiVersion, true)) remember(resource);
      const found = known.get(key);
      if (!found) throw errors.CLUSTER_UNKNOWN_KIND(apiVersion, kind);
      return found;
    },
  };
}

const typeKey = (apiVersion: string, kind: string) => `${apiVersion} ${kind}`;

const AGGREGATED = ["v2", "v2beta1"]
  .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
  .concat("application/json")
  .join(",");

interface AggregatedList {
  kind?: string;
  items?: {
    metadata?: { name?: string };
    versions: { version: string; resources?: AggregatedResource[]; freshness?: string }[];
  }[];
}

interface AggregatedResource {
  resource: string;
  responseKind?: { group: string; version: string; kind: string };
  scope: "Namespaced" | "Cluster";
  verbs: string[];
}

async function aggregated(send: Sender): Promise<DiscoveredResource[] | undefined> {
  const lists: AggregatedList[] = [];
  for (const path of ["/api", "/apis"]) {
    const list = await send.json<AggregatedList>({ method: "GET", path, headers: { accept: AGGREGATED } });
    if (list.kind !== "APIGroupDiscoveryList") return undefined;
    lists.push(list);
  }
  const groups = lists.flatMap((list) => list.items ?? []);
  return groups.flatMap((group) =>
    group.versions.flatMap(({ version, resources = [] }, position) =>
      resources.map((resource) => ({
        group: group.metadata?.name ?? "",
        version,
        kind: resource.responseKind?.kind ?? "",
        plural: resource.resource,
        namespaced: resource.scope === "Namespaced",
        verbs: resource.verbs,
        preferred: position === 0,
      })),
    ),
  );
}

interface GroupList {
  groups?: { versions: { groupVersion: string }[]; preferredVersion?: { groupVersion: string } }[];
}

async function legacy(send: Sender): Promise<DiscoveredResource[]> {
  const { groups = [] } = await send.json<GroupList>({ method: "GET", path: "/apis" });
  const wanted = groups.flatMap((group) =>
    group.versions.map(({ groupVersion: name }) => {
      const preferred = group.preferredVersion?.groupVersion ?? group.versions[0]?.groupVersion;
      return groupVersionResources(send, name, name === preferred).catch(emptyIfAnswered);
    }),
  );
  return (await Promise.all([groupVersionResources(send, "v1", true), ...wanted])).flat();
}

interface ResourceList {
  resources?: { name: string; kind: string; namespaced: boolean; verbs?: string[] }[];
}

/** An aggregated API that is down answers 503 for its own group version: the rest is still worth knowing. */
function emptyIfAnswered(error: unknown): DiscoveredResource[] {
  if (error instanceof StatusError) return [];
  throw error;
}

async function groupVersionResources(
  send: Sender,
  apiVersion: string,
  preferred: boolean,
): Promise<DiscoveredResource[]> {
  const { group, version } = parseGroupVersion(apiVersion);
  try {
    const path = groupVersionPath({ group, version });
    const { resources = [] } = await send.json<ResourceList>({ method: "GET", path }, 0);
    return resources
      .filter(({ name }) => !name.includes("/"))
      .map(({ name, kind, namespaced, verbs = [] }) => {
        return { group, version, kind, plural: name, namespaced, verbs, preferred };
      });
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}
