import { parse } from "yaml";
import type { KubeObject } from "../../src/api/object.ts";

interface Named {
  name: string;
  [field: string]: unknown;
}

interface Template {
  containers?: Named[];
  volumes?: Named[];
}

/**
 * What the mesh's injector does to a pod with a map: from version 1.8 on, templates are pods that are merged by the names of containers and volumes;
 * before, the one template lists what is added. The mesh's own template adds its proxy.
 */
export function inject(map: KubeObject, pod: KubeObject): KubeObject {
  const config = parse((map["data"] as { config: string }).config) as {
    template?: string;
    templates?: Record<string, string>;
    defaultTemplates?: string[];
  };
  const named = (config.defaultTemplates ?? []).map(
    (name) => parse(config.templates?.[name] ?? "{}") as { spec?: Template },
  );
  const templates =
    config.template === undefined ? named.map(({ spec = {} }) => spec) : [parse(config.template) as Template];
  const spec = { ...(pod["spec"] as Template) };
  for (const { containers = [], volumes = [] } of templates) {
    spec.containers = merged(spec.containers ?? [], containers);
    spec.volumes = merged(spec.volumes ?? [], volumes);
  }
  return { ...pod, spec } as KubeObject;
}

function merged(before: readonly Named[], added: readonly Named[]): Named[] {
  const all = new Map(before.map((one) => [one.name, one]));
  for (const one of added) {
    const known = all.get(one.name);
    const mounts = [...((known?.["volumeMounts"] as object[]) ?? []), ...((one["volumeMounts"] as object[]) ?? [])];
    all.set(one.name, { ...known, ...one, ...(mounts.length > 0 && { volumeMounts: mounts }) });
  }
  return [...all.values()];
}
