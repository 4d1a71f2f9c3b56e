import { type Names, vendorNames } from "../names.ts";
import type { KubeObject } from "../object.ts";
import { RESOURCES } from "../resources/all.ts";
import { objectSchema, type PrinterColumn, placesOf, type Resource } from "../resources/resource.ts";
import type { Schema } from "./schema.ts";

/** A CustomResourceDefinition of apiextensions.k8s.io/v1, as far as ours go. */
export type CustomResourceDefinition = KubeObject & {
  spec: {
    group: string;
    names: {
      kind: string;
      listKind: string;
      plural: string;
      singular: string;
      shortNames?: string[];
      categories: string[];
    };
    scope: "Cluster" | "Namespaced";
    versions: {
      name: string;
      served: boolean;
      storage: boolean;
      schema: { openAPIV3Schema: Schema };
      subresources?: { status: Record<string, never> };
      additionalPrinterColumns: PrinterColumn[];
    }[];
  };
};

/**
 * Every resource as a CRD. In another dialect the groups and kinds are that system's, and so are the fields: we do not
 * know them all, so its specs are left open.
 */
export function customResourceDefinitions(names: Names = vendorNames): CustomResourceDefinition[] {
  return RESOURCES.map((resource) => customResourceDefinition(resource, names));
}

function customResourceDefinition(resource: Resource, names: Names): CustomResourceDefinition {
  const { group, version, kind, plural } = placesOf(resource, names).stored;
  const shortNames = [...names.kinds[resource.noun].shortNames];
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        ...(shortNames.length > 0 ? { shortNames } : {}),
        categories: [names.dialect],
      },
      scope: resource.namespaced ? "Namespaced" : "Cluster",
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: names.dialect === "vendor" ? objectSchema(resource) : openSchema(resource) },
          ...(resource.status ? { subresources: { status: {} } } : {}),
          additionalPrinterColumns: resource.columns.filter((column) => knownIn(names, column)),
        },
      ],
    },
  };
}

function openSchema(resource: Resource): Schema {
  const open: Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return objectSchema({ ...resource, spec: open, ...(resource.status ? { status: open } : {}) });
}

/** Columns that read fields of ours have nothing to show in another dialect. */
function knownIn(names: Names, column: PrinterColumn): boolean {
  return names.dialect === "vendor" || !/vendor|\.status\.(version|computed)/i.test(column.jsonPath);
}
