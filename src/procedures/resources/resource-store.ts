import type { KubeObject, ObjectRef } from "../../api/object.ts";
import type { V3Place } from "../../api/resources/v3-places.ts";
import type { JsonPatchOperation } from "../../cluster/client.ts";

/** A patch that v3 resources take. */
export type ResourcePatch = { type: "merge"; patch: object } | { type: "json"; operations: JsonPatchOperation[] };

export interface Written {
  object: KubeObject;
  outcome: "created" | "configured" | "unchanged";
  /** What is stored though the cluster does not do it. */
  warnings: readonly string[];
}

export interface WriteOptions {
  /** Everything is checked and nothing is changed. */
  dryRun?: boolean;
}

/** v3 resources, wherever they are kept; objects are as people write them. */
export interface ResourceStore {
  /** In words: what is asked. */
  readonly from: string;
  list(place: V3Place, options?: { namespace?: string; labelSelector?: string }): Promise<KubeObject[]>;
  get(place: V3Place, ref: ObjectRef): Promise<KubeObject | undefined>;
  apply(place: V3Place, object: KubeObject, options?: WriteOptions & { force?: boolean }): Promise<Written>;
  patch(place: V3Place, ref: ObjectRef, patch: ResourcePatch, options?: WriteOptions): Promise<Written>;
  /** False where there was nothing. */
  delete(place: V3Place, ref: ObjectRef, options?: WriteOptions): Promise<boolean>;
  /** The version the cluster says it runs; undefined where it does not say. */
  version(): Promise<string | undefined>;
}

/** `networkpolicy.vendor.io/web`, as kubectl names things. */
export function printedName({ served }: V3Place, name: string): string {
  return `${served.kind.toLowerCase()}.${served.group}/${name}`;
}
