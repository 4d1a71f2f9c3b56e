import type { Names, Noun } from "../names.ts";
import type { ObjectMeta, ResourceKind } from "../object.ts";
import type { FromSchema } from "../schema/from-schema.ts";
import type { Schema } from "../schema/schema.ts";

/** One noun of ours, described once. CRDs, the v3 API, types, `explain` and validation are all printed from it. */
export interface Resource<Spec extends Schema = Schema, Status extends Schema = Schema> {
  noun: Noun;
  /** `operator` kinds are CRDs only; `v3` kinds are stored as CRDs and served again by the aggregated API. */
  api: "operator" | "v3";
  namespaced: boolean;
  description: string;
  spec: Spec;
  /** Present: the resource has a status subresource. */
  status?: Status;
  columns: readonly PrinterColumn[];
}

/** A column of `kubectl get`; with a priority above 0 only of `-o wide`. */
export interface PrinterColumn {
  name: string;
  type: "string" | "integer" | "number" | "boolean" | "date";
  jsonPath: string;
  description: string;
  priority?: number;
}

export function defineResource<const R extends Resource>(resource: R): R {
  return resource;
}

/** The TypeScript type of a resource's objects. */
export type ObjectOf<R extends Resource> = {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: FromSchema<R["spec"]>;
} & (R extends { status: infer S } ? { status?: FromSchema<S> } : unknown);

/** The short name of the columns every kind ends with. */
export const AGE: PrinterColumn = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
  description: "Time since the object was created",
};

/** The schema of a whole object. */
export function objectSchema(resource: Resource): Schema {
  return {
    type: "object",
    description: resource.description,
    properties: {
      apiVersion: { type: "string", description: "The API group and version this object is written in." },
      kind: { type: "string", description: "The kind of this object." },
      metadata: { type: "object" },
      spec: resource.spec,
      ...(resource.status ? { status: resource.status } : {}),
    },
    // An object may come without a spec only where an empty one would do.
    ...((resource.spec.required ?? []).length > 0 ? { required: ["spec"] } : {}),
  };
}

/** Where a resource lives: `stored` as a CRD, `served` where people use it. The same place for operator kinds. */
export function placesOf(resource: Resource, names: Names): { stored: ResourceKind; served: ResourceKind } {
  const { kind, plural, stored } = names.kinds[resource.noun];
  const scope = { namespaced: resource.namespaced };
  if (resource.api === "operator") {
    const place = { ...names.groups.operator, kind, plural, ...scope };
    return { stored: place, served: place };
  }
  return {
    stored: { ...names.groups.stored, ...(stored ?? { kind, plural }), ...scope },
    served: { ...names.groups.served, kind, plural, ...scope },
  };
}
