import type { KubeObject, ResourceKind } from "../api/object.ts";
import type { Definitions, Schema } from "../api/schema/schema.ts";
import type { StatusCause } from "../api/status.ts";

/** One version of one resource, as the server serves it. Kubernetes' own kinds are a table of these; CRDs and the v3 API make theirs. */
export interface ServedKind extends ResourceKind {
  singular: string;
  shortNames: readonly string[];
  categories: readonly string[];
  schema: Schema;
  definitions: Definitions;
  /** What a client may do; `ALL_VERBS` unless the kind is special (a review can only be created). */
  verbs: readonly Verb[];
  /** Has a `/status` subresource: the main endpoint then ignores `status`, and `/status` ignores all else. */
  status: boolean;
  scale?: ScalePaths;
  columns: readonly Column[];
  /** Fields a client may select by beyond `metadata.name` and `metadata.namespace`. */
  selectable: Readonly<Record<string, (object: KubeObject) => string>>;
  strategy: Strategy;
  /** The version objects are stored in (default: this one). Versions differ in nothing but their name. */
  storageVersion?: string;
  /** True where a client described the schema (a CRD): problems are then 422s with fields, as for any custom resource. */
  custom?: boolean;
}

export type Verb = "create" | "delete" | "deletecollection" | "get" | "list" | "patch" | "update" | "watch";
export const ALL_VERBS: readonly Verb[] = [
  "create",
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "update",
  "watch",
];

/** Dotted paths such as `.spec.replicas`. */
export interface ScalePaths {
  spec: string;
  status: string;
  selector?: string;
}

/** A column of `kubectl get`. Priority 0 is always shown, above it only with `-o wide`. */
export interface Column {
  name: string;
  type: "string" | "integer" | "number" | "boolean" | "date";
  format?: string;
  description: string;
  priority: number;
  value(object: KubeObject, now: Date): string | number | boolean | null;
}

/**
 * What a kind does beyond storing what its schema accepts. All functions are pure but for changing the object they are given,
 * and are called with defaults filled in. `prepare…` fills what the server decides; `validate…` lists what is wrong.
 */
export interface Strategy {
  prepareForCreate?(object: KubeObject): void;
  prepareForUpdate?(object: KubeObject, old: KubeObject): void;
  validate?(object: KubeObject): StatusCause[];
  validateUpdate?(object: KubeObject, old: KubeObject): StatusCause[];
  /** Fills defaults a schema cannot express (those that depend on other fields). Runs on every write, after schema defaults. */
  setDefaults?(object: KubeObject): void;
  /** Seconds a deleted object lingers with a deletionTimestamp until the kubelet deletes it with grace 0. */
  gracePeriodSeconds?(object: KubeObject): number;
}
