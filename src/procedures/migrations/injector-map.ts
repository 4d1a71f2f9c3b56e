import { parseAllDocuments } from "yaml";
import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { CodedError } from "../../kit/errors.ts";
import type { ReleaseFiles } from "../../releases/release-files.ts";
import { errors } from "./errors.ts";

/** Mesh versions whose injector reads its configuration differently; the release has a file for each. */
const MESH_VERSIONS = ["1.1.0", "1.5", "1.10", "1.15"] as const;

/** The injector's config map for a version of the mesh, as the release has it. */
export async function readInjectorMap(files: ReleaseFiles, names: Names, meshVersion: string): Promise<KubeObject> {
  const file = names.manifests.sidecarInjector(meshVersion);
  const text = await files.read(file).catch((error: unknown) => {
    const absent =
      error instanceof CodedError && ["MANIFEST_NOT_FOUND", "MANIFEST_MISSING_FROM_PACKAGE"].includes(error.code);
    if (!absent) throw error;
    throw errors.MESH_VERSION_UNKNOWN(meshVersion, MESH_VERSIONS.join(", "), files.from).from(error);
  });
  const objects: unknown[] = [];
  for (const document of parseAllDocuments(text)) {
    const [problem] = document.errors;
    if (problem) throw errors.INJECTOR_MAP_BAD(file, problem.message.split("\n", 1)[0]!);
    const value: unknown = document.toJS();
    if (value !== null) objects.push(value);
  }
  const [map, ...more] = objects as (KubeObject | undefined)[];
  if (more.length > 0) throw errors.INJECTOR_MAP_BAD(file, `it has ${objects.length} documents instead of one`);
  if (map?.kind !== "ConfigMap" || map.apiVersion !== "v1")
    throw errors.INJECTOR_MAP_BAD(file, "it is not a ConfigMap");
  if (!map.metadata?.name || !map.metadata.namespace)
    throw errors.INJECTOR_MAP_BAD(file, "it has no name or namespace");
  return map;
}
