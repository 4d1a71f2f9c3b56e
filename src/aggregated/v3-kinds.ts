import { type Names, vendorNames } from "../api/names.ts";
import { objectSchema, type Resource } from "../api/resources/resource.ts";
import { type V3Place, v3Place, v3Resources } from "../api/resources/v3-places.ts";
import { VERSION } from "../api/tables/release.ts";
import { servedKinds } from "../apiserver/custom-resources.ts";
import type { ServedKind } from "../apiserver/resource.ts";

/** One v3 resource, as this API serves it. */
export interface V3Kind extends V3Place {
  served: ServedKind;
}

export function v3Kinds(version: string = VERSION, names: Names = vendorNames): V3Kind[] {
  return v3Resources(version).map((resource) => v3Kind(resource, names));
}

function v3Kind(resource: Resource, names: Names): V3Kind {
  const place = v3Place(resource, names);
  const { group, version, kind, plural } = place.served;
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
  return { ...place, served: made! };
}
