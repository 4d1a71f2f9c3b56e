import { type Names, type Noun, vendorNames } from "../api/names.ts";
import { groupVersion, type ResourceKind } from "../api/object.ts";
import { RESOURCES } from "../api/resources/all.ts";
import { objectSchema, placesOf, type Resource } from "../api/resources/resource.ts";
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

export function v3Kinds(names: Names = vendorNames): V3Kind[] {
  return RESOURCES.filter(({ api }) => api === "v3").map((resource) => v3Kind(resource, names));
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
