import { type Names, type Noun, vendorNames } from "../api/names.ts";
import { groupVersion, type ResourceKind } from "../api/object.ts";
import { VERSION } from "../api/release.ts";
import { RESOURCES } from "../api/resources/all.ts";
import { objectSchema, placesOf, type Resource } from "../api/resources/resource.ts";
import { compareVersions, parseVersion, sameLine } from "../api/version.ts";
import { servedKinds } from "../apiserver/custom-resources.ts";
import type { ServedKind } from "../apiserver/resource.ts";

/** One v3 resource: as people see it, and where it is kept. */
export interface V3Kind {
  noun: Noun;
  served: ServedKind;
  stored: ResourceKind;
  /** A policy: kept under `TIER.NAME`, and only for those who may see its tier. */
  tiered: boolean;
}

/** Kinds that came later than the oldest version this API can stand in for. */
const SINCE: Partial<Record<Noun, string>> = { tier: "v3.29" };

/** What a version served; where it had no tiers, every policy was in the default one. */
export function v3Kinds(version: string = VERSION, names: Names = vendorNames): V3Kind[] {
  return RESOURCES.filter(({ api, noun }) => api === "v3" && hasKind(version, noun)).map((resource) =>
    v3Kind(resource, names),
  );
}

function hasKind(version: string, noun: Noun): boolean {
  const running = parseVersion(version);
  const since = parseVersion(SINCE[noun] ?? "");
  return !running || !since || sameLine(running, since) || compareVersions(running, since) > 0;
}

function v3Kind(resource: Resource, names: Names): V3Kind {
  const { stored, served } = placesOf(resource, names);
  const { group, version, kind, plural } = served;
  // Described as the CRD it could have been, so that both APIs read the same words.
  const [made] = servedKinds({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: resource.namespaced ? "Namespaced" : "Cluster",
      names: { kind, plural, shortNames: [...names.kinds[resource.noun].shortNames], categories: [names.dialect] },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: objectSchema(resource) },
          ...(resource.status ? { subresources: { status: {} } } : {}),
          additionalPrinterColumns: [...resource.columns],
        },
      ],
    },
  });
  const tiered = resource.noun === "networkPolicy" || resource.noun === "globalNetworkPolicy";
  return { noun: resource.noun, served: made!, stored, tiered };
}

/** By `apiVersion` and kind, in either API. */
export function findKind(kinds: readonly V3Kind[], apiVersion: string, kind: string): V3Kind | undefined {
  return kinds.find(({ served, stored }) =>
    [served, stored].some((place) => place.kind === kind && groupVersion(place) === apiVersion),
  );
}
