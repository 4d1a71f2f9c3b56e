import type { KubeObject } from "../../api/object.ts";
import type { Action, Work } from "../action.ts";
import { restoreService, type SavedObject } from "../restore-service.ts";
import { isOfService, serviceObjects } from "../service-objects.ts";
import { imageOf } from "./image.ts";

/**
 * Remembers every object of the service before anything changes. The operator of the new version changes many that no step names;
 * the undo of this step brings each to what it was: created again, restored, or deleted.
 */
export const saveService: Action<object, SavedObject[]> = {
  needed: async () => true,
  before: async (_inputs, work) =>
    (await serviceObjects(work.client, work.names, { signal: work.signal })).map(saved(work)),
  apply: async (_inputs, work, before) => work.say(`${before.length} objects are saved in the journal`),
  undo: (_inputs, work, before) => restoreService(before, work),
};

/** With its UID, which owners are named by, and the status of what only an operator reports on. */
function saved({ names }: Work): (object: KubeObject) => SavedObject {
  return (object) => {
    const reported = object.apiVersion.startsWith(`${names.groups.operator.group}/`) && isOfService(object, names);
    const image = imageOf(object);
    return {
      uid: object.metadata.uid ?? "",
      image,
      ...(object.metadata.managedFields ? { owners: object.metadata.managedFields } : {}),
      ...(reported && object["status"] !== undefined ? { status: object["status"] as object } : {}),
    };
  };
}
