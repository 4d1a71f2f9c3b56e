import type { KubeObject } from "../api/object.ts";
import type { ServedKind } from "./resource.ts";

export type IncludeObject = "None" | "Metadata" | "Object";

export function includeObjectOf(query: URLSearchParams): IncludeObject {
  const asked = query.get("includeObject");
  return asked === "None" || asked === "Object" ? asked : "Metadata";
}

/** What `kubectl get` prints: columns once, a row for each object. */
export function tableOf(
  kind: ServedKind,
  objects: readonly KubeObject[],
  options: { version: string; include: IncludeObject; now: Date; metadata: Record<string, unknown>; header: boolean },
): Record<string, unknown> {
  const apiVersion = `meta.k8s.io/${options.version}`;
  return {
    kind: "Table",
    apiVersion,
    metadata: options.metadata,
    columnDefinitions: options.header
      ? kind.columns.map(({ name, type, format, description, priority }) => ({
          name,
          type,
          format: format ?? "",
          description,
          priority,
        }))
      : [],
    rows: objects.map((object) => ({
      cells: kind.columns.map((column) => column.value(object, options.now)),
      ...included(object, apiVersion, options.include),
    })),
  };
}

function included(object: KubeObject, apiVersion: string, include: IncludeObject): Record<string, unknown> {
  if (include === "None") return {};
  return { object: include === "Object" ? object : metadataOnly(object, apiVersion) };
}

export function metadataOnly(object: KubeObject, apiVersion: string): Record<string, unknown> {
  return { kind: "PartialObjectMetadata", apiVersion, metadata: object.metadata };
}
