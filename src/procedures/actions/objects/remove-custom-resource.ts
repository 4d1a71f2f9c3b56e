import { type Condition, groupVersion, type KubeObject } from "../../../api/object.ts";
import { findCondition } from "../../../cluster/conditions.ts";
import { isConflict } from "../../../cluster/failures.ts";
import type { Action, Work } from "../../action.ts";
import { awaitObjects } from "./await-objects.ts";
import { type DeleteObjectInputs, deleteObject } from "./delete-object.ts";
import { kindOf, nameOf, readTarget, type Target, undefinedIfNotFound } from "./target.ts";

type RemoveCustomResourceInputs = DeleteObjectInputs & {
  /** No operator runs, so the finalizers are removed here. What it installed is removed by a later step. */
  withoutOperator?: boolean;
};

type Before = { uid: string; image: KubeObject } | null;

/**
 * Deletes a custom resource and waits while the operator takes away what it brought, saying all the time who holds it and what the
 * operator says it waits for. Only where the plan found no operator, the finalizers are removed here.
 */
export const removeCustomResource: Action<RemoveCustomResourceInputs, Before> = {
  needed: deleteObject.needed,
  before: deleteObject.before as NonNullable<Action<RemoveCustomResourceInputs, Before>["before"]>,
  async apply({ target, withoutOperator }, work, before) {
    if (before === null) return;
    await requestDeletion(target, before.uid, work);
    if (withoutOperator) await removeFinalizers(target, before.uid, work);
  },
  async confirm({ target }, work, before) {
    const kind = await kindOf(work.client, target);
    if (before === null || kind === undefined || (await readTarget(work, target)) === undefined) return;
    const statuses = await statusKind(work);
    await awaitObjects(work, [{ kind, name: target.name }, ...statuses], ([left = [], said = []]) => {
      const still = left.find(({ metadata }) => metadata.uid === before.uid);
      if (still === undefined) return "done";
      return { waitingFor: `${nameOf(target)} to be deleted: ${blockers(still, said).join("; ")}` };
    });
  },
  preview: async (inputs, work) => (await deleteObject.preview?.(inputs, work)) ?? [],
  undo: deleteObject.undo as NonNullable<Action<RemoveCustomResourceInputs, Before>["undo"]>,
};

async function requestDeletion(target: Target, uid: string, work: Work): Promise<void> {
  const { client, signal } = work;
  const [kind, live] = [await kindOf(client, target), await readTarget(work, target)];
  if (kind === undefined || live?.metadata.uid !== uid || live.metadata.deletionTimestamp !== undefined) return;
  try {
    await client.delete(kind, target, { propagationPolicy: "Background", preconditions: { uid }, signal });
  } catch (error) {
    // It changed between our look and our word: look again, it may be another by now.
    if (isConflict(error)) return requestDeletion(target, uid, work);
    undefinedIfNotFound(error);
  }
}

async function removeFinalizers(target: Target, uid: string, work: Work): Promise<void> {
  const { client, signal } = work;
  const [kind, live] = [await kindOf(client, target), await readTarget(work, target)];
  if (kind === undefined || live?.metadata.uid !== uid || !live.metadata.finalizers?.length) return;
  work.say(`no operator runs: finalizers ${live.metadata.finalizers.join(", ")} are removed`);
  const patch = { metadata: { uid, finalizers: null } };
  await client.patch(kind, target, { type: "merge", patch }, { signal }).catch(undefinedIfNotFound);
}

async function statusKind({ client, names }: Work) {
  const kind = await kindOf(client, {
    apiVersion: groupVersion(names.groups.operator),
    kind: names.kinds.status.kind,
  });
  return kind === undefined ? [] : [{ kind }];
}

/** Who holds it, and why: the finalizers, and what the parts say that are not well. */
function blockers(object: KubeObject, statuses: readonly KubeObject[]): string[] {
  const held = object.metadata.finalizers ?? [];
  const parts = statuses.flatMap(({ metadata, status }) => {
    const { conditions } = (status ?? {}) as { conditions?: Condition[] };
    const why = ["Degraded", "Progressing"]
      .map((type) => findCondition(conditions, type))
      .find((condition) => condition?.status === "True");
    return why?.message ? [`${metadata.name}: ${why.message}`] : [];
  });
  return [held.length > 0 ? `finalizers ${held.join(", ")}` : "no finalizer left", ...parts];
}
