import type { KubeObject } from "../../api/object.ts";
import type { Client } from "../../cluster/client.ts";
import { isAlreadyExists, isNotFound } from "../../cluster/failures.ts";
import { MANAGER } from "../../operator/apply.ts";

/** Who the operator is to the API server, then as now: what it no longer renders goes when it applies again. */
export const OPERATOR = MANAGER;
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** Writes objects as an earlier manager did, and leaves existing ones alone. */
export interface Seeder {
  /** Answers with the object as the server has it, its UID included. */
  put(object: KubeObject, manager?: string): Promise<KubeObject>;
  /** One after another: owners come before what they own. */
  putAll(objects: readonly KubeObject[], manager?: string): Promise<KubeObject[]>;
}

export function createSeeder(client: Client, installer: string): Seeder {
  const put: Seeder["put"] = async (object, manager = installer) => {
    const kind = await client.resourceFor(object);
    if (manager === OPERATOR) {
      const there = await client.get<KubeObject>(kind, object.metadata).catch(undefinedIfAbsent);
      return (
        there ?? (await client.apply<KubeObject>(kind, object, { fieldManager: OPERATOR, fieldValidation: "Strict" }))
      );
    }
    const written = manager === "kubectl-client-side-apply" ? withLastApplied(object) : object;
    try {
      return await client.create(kind, written, { fieldManager: manager, fieldValidation: "Strict" });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return await client.get<KubeObject>(kind, object.metadata);
    }
  };
  return {
    put,
    async putAll(objects, manager) {
      const there: KubeObject[] = [];
      for (const object of objects) there.push(await put(object, manager));
      return there;
    },
  };
}

function undefinedIfAbsent(error: unknown): undefined {
  if (isNotFound(error)) return undefined;
  throw error;
}

/** What `kubectl apply` remembers on the object, for its three-way merge the next time. */
function withLastApplied(object: KubeObject): KubeObject {
  const { annotations = {}, ...metadata } = object.metadata;
  const applied = `${JSON.stringify({ ...object, metadata: { annotations, ...metadata } })}\n`;
  return { ...object, metadata: { ...object.metadata, annotations: { ...annotations, [LAST_APPLIED]: applied } } };
}
