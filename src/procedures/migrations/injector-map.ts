import { parse, parseAllDocuments, stringify } from "yaml";
import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { CodedError } from "../../kit/errors.ts";
import type { ReleaseFiles } from "../../releases/release-files.ts";
import { KUBECTL_YAML } from "../merge/kubectl-yaml.ts";
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
  for (const document of parseAllDocuments(text, KUBECTL_YAML)) {
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

/** What the injector adds to a pod, as our files write it: plain, without the mesh's template language. */
interface Injected {
  containers?: { name: string; volumeMounts?: object[] }[];
  volumes?: { name: string }[];
}

interface InjectorConfig {
  template?: string;
  templates?: Record<string, string>;
  defaultTemplates?: string[];
}

/** Undefined where the map's template cannot be read without the mesh. */
export function injectedByMap(map: KubeObject, names: Names): Injected | undefined {
  const { template, templates } = configOf(map) ?? {};
  try {
    const own = template ?? templates?.[names.dialect];
    const read = own === undefined ? undefined : (parse(own) as Injected & { spec?: Injected });
    return read?.spec ?? read;
  } catch {
    return undefined;
  }
}

/**
 * The map with the mesh's own templates kept: ConfigMaps are merged by key, and all of them are in one key. What an earlier release of ours had added is replaced.
 * `live` is the map in the cluster.
 */
export function keepMeshTemplates(map: KubeObject, live: KubeObject | undefined, names: Names): KubeObject {
  const [ours, theirs] = [configOf(map), live && configOf(live)];
  const injected = injectedByMap(map, names);
  if (!ours || !theirs || !injected) return map;
  const where = `ConfigMap ${map.metadata.namespace}/${map.metadata.name}`;
  const merged: InjectorConfig =
    ours.templates === undefined
      ? { ...theirs, template: intoTemplate(theirs.template, ours.template ?? "", injected, names, where) }
      : {
          ...theirs,
          defaultTemplates: [
            ...new Set([...(theirs.defaultTemplates ?? ours.defaultTemplates ?? []), ...(ours.defaultTemplates ?? [])]),
          ],
          templates: { ...theirs.templates, ...ours.templates },
        };
  const data = { ...(map["data"] as Record<string, string>), config: stringify(merged, { lineWidth: 0 }) };
  return { ...map, data };
}

function configOf(map: KubeObject): InjectorConfig | undefined {
  try {
    const read: unknown = parse((map["data"] as { config?: string } | undefined)?.config ?? "");
    return typeof read === "object" && read !== null ? (read as InjectorConfig) : undefined;
  } catch {
    return undefined;
  }
}

/** Lines of ours in a template of the mesh: the next release finds them by it. */
const MARK = "# vendor-policy";

/** Older meshes have one template, which is text with instructions in it: what we add are whole lines, after the lines that begin the lists. */
function intoTemplate(
  theirs: string | undefined,
  ours: string,
  injected: Injected,
  names: Names,
  where: string,
): string {
  if (theirs === undefined) return ours;
  const lines = theirs.split("\n").filter((line) => !line.endsWith(MARK));
  const { meshProxyContainer, sidecarContainer } = names.manifests;
  const own = injected.containers?.filter(({ name }) => name === sidecarContainer) ?? [];
  const shared = own.flatMap(({ volumeMounts = [] }) => volumeMounts).slice(0, 1);
  if (lines.some((line) => line.trim() === `- name: ${sidecarContainer}`)) {
    // A template that was ours alone: there is nothing of the mesh to keep.
    if (!lines.some((line) => line.includes(meshProxyContainer))) return ours;
    throw errors.INJECTOR_TEMPLATE_FOREIGN(
      where,
      `it has a container ${sidecarContainer} that was not added by vendorctl`,
    );
  }
  const proxy = lines.findIndex((line) => line.trim() === `- name: ${meshProxyContainer}`);
  const mounts = lines.findIndex((line, index) => index > proxy && line.trim() === "volumeMounts:");
  if (proxy < 0 || mounts < 0)
    throw errors.INJECTOR_TEMPLATE_FOREIGN(where, `it has no container ${meshProxyContainer} with volumeMounts`);
  insert(lines, mounts, shared);
  for (const [list, items] of [
    ["containers:", own],
    ["volumes:", injected.volumes ?? []],
  ] as const) {
    const at = lines.indexOf(list);
    if (at < 0) throw errors.INJECTOR_TEMPLATE_FOREIGN(where, `it has no line "${list}"`);
    insert(lines, at, items);
  }
  return lines.join("\n");
}

/** After the line of a list, with its indentation. */
function insert(lines: string[], at: number, items: readonly object[]): void {
  const indent = /^ */.exec(lines[at] as string)?.[0] ?? "";
  const added = stringify(items, { lineWidth: 0 }).trimEnd().split("\n");
  lines.splice(at + 1, 0, ...added.map((line) => `${indent}${line} ${MARK}`));
}
