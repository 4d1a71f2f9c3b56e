import type { KubeObject } from "../../api/object.ts";
import type { Action, Work } from "../action.ts";
import { restoreService, type SavedObject } from "../restore-service.ts";
import { isAddressBookkeeping, isOfService, serviceObjects } from "../service-objects.ts";
import { imageOf } from "./image.ts";

type SaveServiceInputs = {
  /** Pods come and go until a rollback: which address is whose stays as it is then. */
  leavesAddresses?: true;
};

/**
 * Remembers every object of the service before anything changes. The operator of the new version changes many that no step names;
 * the undo of this step brings each to what it was: created again, restored, or deleted.
 */
export const saveService: Action<SaveServiceInputs, SavedObject[]> = {
  needed: async () => true,
  before: async (inputs, work) =>
    (await serviceObjects(work.client, work.names, { signal: work.signal }))
      .filter((object) => !isLeft(object, inputs, work))
      .map(savedObject(work)),
  apply: async (_inputs, work, before) => work.say(`${before.length} objects are saved in the journal`),
  undo: (inputs, work, before) => restoreService(before, work, (object) => isLeft(object, inputs, work)),
};

function isLeft(object: KubeObject, { leavesAddresses }: SaveServiceInputs, { names }: Work): boolean {
  return leavesAddresses === true && isAddressBookkeeping(object, names);
}

/** With its UID, which owners are named by, and the status of what only an operator reports on. */
export function savedObject({ names }: Pick<Work, "names">): (object: KubeObject) => SavedObject {
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
