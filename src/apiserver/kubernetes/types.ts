import type { Definitions, Schema } from "../../api/schema/schema.ts";
import types from "./types.gen.json" with { type: "json" };

/** Kubernetes' own types, as `tools/kubernetes-types.mjs` reads them from their declarations. */
export const DEFINITIONS = types as unknown as Definitions;

/** In a definition: the optional fields that Go writes even when they are empty. */
export const KEPT_WHEN_EMPTY = "x-kept-when-empty";

export const OBJECT_META_TYPE = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
export const LIST_META_TYPE = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

export function typeNamed(name: string): Schema {
  const found = DEFINITIONS[name];
  if (!found) throw new Error(`Kubernetes has no type ${name}`);
  return found;
}

/** Where Kubernetes declares the types of a group: its name without the domain, except where history put it elsewhere. */
export function packageOf(group: string, version: string): string {
  if (group === "apiextensions.k8s.io") return `io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.${version}`;
  if (group === "apiregistration.k8s.io") return `io.k8s.kube-aggregator.pkg.apis.apiregistration.${version}`;
  const short = group === "" ? "core" : group.split(".")[0];
  return `io.k8s.api.${short}.${version}`;
}
