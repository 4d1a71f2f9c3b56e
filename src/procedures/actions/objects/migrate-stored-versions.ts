import type { KubeObject, ResourceKind } from "../../../api/object.ts";
import { isConflict, isNotFound } from "../../../cluster/failures.ts";
import { CRDS } from "../../../cluster/kinds.ts";
import type { Action, Work } from "../../action.ts";

export type MigrateStoredVersionsInputs = { definitions: readonly string[] };

interface Definition extends KubeObject {
  spec: {
    group: string;
    scope: string;
    names: { kind: string; plural: string };
    versions: { name: string; storage: boolean; served: boolean }[];
  };
  status?: { storedVersions?: string[] };
}

/** Writes every object of some definitions again, so that all are stored in the version that is stored now, and says so. */
export const migrateStoredVersions: Action<MigrateStoredVersionsInputs> = {
  async needed({ definitions }, work) {
    for (const name of definitions) if (isBehind(await read(name, work))) return true;
    return false;
  },
  async apply({ definitions }, work) {
    for (const name of definitions) {
      const definition = await read(name, work);
      if (isBehind(definition)) await migrate(definition, work);
    }
  },
  // An older version reads what is stored in a version it serves; it does not ask which one that is.
  undo: async () => {},
};

async function read(name: string, { client, signal }: Work): Promise<Definition> {
  return await client.get<Definition>(CRDS, { name }, { signal });
}

const storageVersion = ({ spec }: Definition) => spec.versions.find(({ storage }) => storage)?.name ?? "";

function isBehind(definition: Definition): boolean {
  return (definition.status?.storedVersions ?? []).some((version) => version !== storageVersion(definition));
}

async function migrate(definition: Definition, work: Work): Promise<void> {
  const { client, signal } = work;
  const { group, names, scope } = definition.spec;
  const version = storageVersion(definition);
  const kind: ResourceKind = { group, version, ...names, namespaced: scope === "Namespaced" };
  const { items } = await client.list<KubeObject>(kind, { signal });
  for (const object of items) await writeAgain(kind, object, work);
  const patch = { status: { storedVersions: [version] } };
  const { name } = definition.metadata;
  await client.patch(CRDS, { name }, { type: "merge", patch }, { subresource: "status", signal });
  work.say(`${name}: ${items.length} objects stored as ${version}`);
}

async function writeAgain(kind: ResourceKind, object: KubeObject, { client, signal }: Work): Promise<void> {
  try {
    await client.replace(kind, object, { signal });
  } catch (error) {
    // Written by another client since, and so in the new version; or gone.
    if (!isConflict(error) && !isNotFound(error)) throw error;
  }
}
