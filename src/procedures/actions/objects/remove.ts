import type { DeleteOptions } from "../../../cluster/client.ts";
import { isConflict } from "../../../cluster/failures.ts";
import type { Work } from "../../action.ts";
import { awaitObjects } from "./await-objects.ts";
import { kindOf, nameOf, readTarget, type Target, undefinedIfNotFound } from "./target.ts";

/**
 * Deletes an object and waits until it is gone: the owner of its finalizer still needs what is removed after it. `letGo`: its owner is gone
 * already, and so its finalizers are removed here.
 */
export async function removeAndAwait(
  target: Target,
  work: Work,
  options: { uid?: string; propagation?: DeleteOptions["propagationPolicy"]; letGo?: boolean } = {},
): Promise<void> {
  const { client, signal } = work;
  const kind = await kindOf(client, target);
  const live = await readTarget(work, target);
  if (kind === undefined || live === undefined) return;
  const uid = options.uid ?? live.metadata.uid;
  // Another object of the same name, made since: not ours to delete.
  if (live.metadata.uid !== uid) return;
  if (live.metadata.deletionTimestamp === undefined) {
    const { propagation = "Background" } = options;
    try {
      await client.delete(kind, target, {
        propagationPolicy: propagation,
        preconditions: { uid: uid as string },
        signal,
      });
    } catch (error) {
      // It changed between our look and our word: look again, it may be another by now.
      if (isConflict(error)) return removeAndAwait(target, work, { ...options, uid: uid as string });
      undefinedIfNotFound(error);
    }
  }
  if (options.letGo && live.metadata.finalizers?.length) {
    const patch = { metadata: { uid, finalizers: null } };
    await client.patch(kind, target, { type: "merge", patch }, { signal }).catch(undefinedIfNotFound);
  }
  const { namespace, name } = target;
  await awaitObjects(work, [{ kind, namespace, name }], ([found = []]) => {
    const still = found.find(({ metadata }) => metadata.uid === uid);
    if (still === undefined) return "done";
    const held = still.metadata.finalizers?.length ? `, finalizers ${still.metadata.finalizers.join(", ")}` : "";
    return { waitingFor: `${nameOf(target)} to be deleted${held}` };
  });
}
