import { createHash } from "node:crypto";
import type { KubeObject } from "../../api/object.ts";
import type { SeenCrd } from "../observation.ts";

interface Definition extends KubeObject {
  spec?: {
    group?: string;
    scope?: string;
    names?: { kind?: string; plural?: string };
    versions?: { name: string; served?: boolean; storage?: boolean; schema?: unknown; subresources?: unknown }[];
  };
  status?: { storedVersions?: string[]; conditions?: { type: string; status: string }[] };
}

export function seeDefinition(object: KubeObject): SeenCrd {
  const definition = object as Definition;
  return {
    name: definition.metadata.name,
    versions: (definition.spec?.versions ?? []).map(({ name }) => name),
    stored: definition.status?.storedVersions ?? [],
    established: (definition.status?.conditions ?? []).some(
      ({ type, status }) => type === "Established" && status === "True",
    ),
    hash: definitionHash(definition),
  };
}

/** Of what a definition promises; what API servers fill in by themselves does not count. */
export function definitionHash(definition: KubeObject): string {
  const { group, scope, names, versions = [] } = (definition as Definition).spec ?? {};
  const promised = {
    group,
    scope,
    kind: names?.kind,
    plural: names?.plural,
    versions: versions.map(({ name, served, storage, schema, subresources }) => {
      return { name, served, storage, schema, subresources };
    }),
  };
  return createHash("sha256").update(ordered(promised)).digest("hex").slice(0, 16);
}

function ordered(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === "object" && item !== null && !Array.isArray(item)
      ? Object.fromEntries(
          Object.entries(item)
            .filter(([key, inner]) => !(key === "properties" && isEmpty(inner)))
            .sort(([a], [b]) => (a < b ? -1 : 1)),
        )
      : item,
  );
}

/** API servers leave an empty list of properties out. */
function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
