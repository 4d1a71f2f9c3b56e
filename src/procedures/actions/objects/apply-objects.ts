import { isDeepStrictEqual } from "node:util";
import type { Condition, KubeObject, ResourceKind } from "../../../api/object.ts";
import { StatusError } from "../../../api/status.ts";
import { findCondition } from "../../../cluster/conditions.ts";
import { isConflict, isNotFound } from "../../../cluster/failures.ts";
import { CRDS } from "../../../cluster/kinds.ts";
import type { Action, Preview, Work } from "../../action.ts";
import { namesByKind } from "../../names-by-kind.ts";
import { errors } from "../errors.ts";
import { imageOf, restored } from "../image.ts";
import { awaitObjects } from "./await-objects.ts";
import { removeAndAwait } from "./remove.ts";
import { type Settle, settled } from "./settle.ts";
import { kindOf, nameOf, readTarget, targetOf, undefinedIfNotFound } from "./target.ts";

export type ApplyObjectsInputs = {
  /** In the order they are applied; definitions are waited for before what they define. */
  objects: readonly KubeObject[];
  /** False: fields of other managers are refused instead of taken over. */
  force?: boolean;
  /** Their operator is removed before them in a rollback: their finalizers are removed here. */
  letGo?: boolean;
  /** Waited for after the undo. */
  afterUndo?: Settle;
};

/** Per object, in the same order: what was there, or null. */
type Before = (KubeObject | null)[];

/** Server-side apply of objects, as the field manager of the client. Taking over a field of another manager is said, never silent. */
export const applyObjects: Action<ApplyObjectsInputs, Before> = {
  async needed({ objects }, work) {
    for (const object of objects) if (await wouldChange(object, work)) return true;
    return false;
  },

  async before({ objects }, work) {
    const found: Before = [];
    for (const object of objects) {
      const live = await readTarget(work, targetOf(object));
      found.push(live === undefined ? null : imageOf(live));
    }
    return found;
  },

  async apply({ objects, force = true }, work) {
    const taken: TakenOver = new Map();
    try {
      for (const object of objects) {
        const applied = await applyOne(object, { force, taken }, work);
        if (applied.kind === CRDS.kind) await awaitEstablished(applied.metadata.name, work);
      }
    } finally {
      for (const [field, names] of taken) work.say(`${namesByKind(names)}: takes over ${field}`);
    }
  },

  async preview({ objects }, work) {
    const previews: Preview[] = [];
    for (const object of objects) previews.push(await previewOne(object, work));
    return previews;
  },

  async undo({ objects, afterUndo, letGo = false }, work, before) {
    for (const [index, object] of [...objects.entries()].reverse()) {
      const image = before[index];
      if (image) await restore(image, work);
      else await removeAndAwait(targetOf(object), work, { letGo });
    }
    await settled(afterUndo, work);
  },
};

async function wouldChange(object: KubeObject, work: Work): Promise<boolean> {
  const { live, planned } = await previewOne(object, work);
  return live === undefined || planned === undefined || !isDeepStrictEqual(imageOf(planned), imageOf(live));
}

/** As the server would store it, if a dry run can show it: a new object may have no namespace or CRD yet, and is shown as it is written. */
async function previewOne(object: KubeObject, work: Work): Promise<Preview> {
  const { client, signal } = work;
  const kind = await kindOf(client, object);
  const live = await readTarget(work, targetOf(object));
  if (kind === undefined || live === undefined) return { live: undefined, planned: object };
  try {
    return { live, planned: await client.apply<KubeObject>(kind, object, { force: true, dryRun: true, signal }) };
  } catch (error) {
    // What the server refuses here it refuses again in the run, and there the reason is reported.
    if (error instanceof StatusError) return { live, planned: undefined };
    throw error;
  }
}

/** The objects by the field that was taken from another manager: CRDs mostly lose the same one. */
type TakenOver = Map<string, string[]>;

async function applyOne(
  object: KubeObject,
  { force, taken }: { force: boolean; taken: TakenOver },
  work: Work,
): Promise<KubeObject> {
  const { client, signal } = work;
  const kind = await client.resourceFor(object);
  try {
    return await client.apply<KubeObject>(kind, object, { signal });
  } catch (error) {
    if (!isConflict(error)) throw error;
    const fields = conflictsIn(error as StatusError);
    if (!force) throw errors.STEP_CONFLICT(nameOf(targetOf(object)), fields.join("; ")).from(error);
    const name = nameOf(targetOf(object));
    for (const field of fields) taken.set(field, [...(taken.get(field) ?? []), name]);
    return client.apply<KubeObject>(kind, object, { force: true, signal });
  }
}

/** `spec.replicas from "kubectl"`, one per field. */
export function conflictsIn(error: StatusError): string[] {
  const causes = error.status.details?.causes ?? [];
  if (causes.length === 0) return [error.message];
  return causes.map(({ field = "", message = "" }) => {
    const manager = /conflict with (.+)$/.exec(message)?.[1] ?? "another manager";
    return `${field.replace(/^\./, "")} from ${manager}`;
  });
}

async function awaitEstablished(name: string, work: Work): Promise<void> {
  await awaitObjects(work, [{ kind: CRDS, name }], ([found = []]) => {
    const { conditions } = (found[0]?.["status"] ?? {}) as { conditions?: Condition[] };
    const refused = findCondition(conditions, "NamesAccepted");
    if (refused?.status === "False") return { hopeless: errors.STEP_HOPELESS(`CRD ${name}`, `${refused.message}`) };
    if (findCondition(conditions, "Established")?.status === "True") return "done";
    return { waitingFor: `CRD ${name} to be established` };
  });
}

/** As it was: replaced where it is there, created where it is gone. Nothing is written where nothing differs. */
export async function restore(image: KubeObject, work: Work): Promise<void> {
  const { client, signal } = work;
  const kind = await client.resourceFor(image);
  for (;;) {
    const live = await client.get<KubeObject>(kind, image.metadata, { signal }).catch(undefinedIfNotFound);
    if (live === undefined) return createAgain(kind, image, work);
    if (isDeepStrictEqual(imageOf(live), imageOf(restored(image, live)))) return;
    try {
      await client.replace(kind, restored(image, live), { signal });
      return;
    } catch (error) {
      // A conflict, or it was deleted: read again.
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  }
}

async function createAgain(kind: ResourceKind, image: KubeObject, { client, signal }: Work): Promise<void> {
  await client.create(kind, image, { signal });
}
