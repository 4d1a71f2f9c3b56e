import type { KubeObject, ManagedFieldsEntry } from "../../../api/object.ts";
import type { JsonPatchOperation } from "../../../cluster/client.ts";
import { isConflict } from "../../../cluster/failures.ts";
import type { Action, Work } from "../../action.ts";
import { LAST_APPLIED } from "../../last-applied.ts";
import { namesByKind } from "../../names-by-kind.ts";
import { kindOf, nameOf, readTarget, type Target } from "./target.ts";

export type AdoptFieldsInputs = {
  objects: readonly Target[];
  /** Those who applied the old release; what they wrote becomes ours. */
  managers: readonly string[];
};

/** The field manager of our applies. */
export const MANAGER = "vendorctl";

/**
 * Makes us the owner of what an earlier installer wrote, so that fields the new release no longer has go when it is applied. This is
 * what kubectl does on its own way from client-side to server-side apply. No field changes its value.
 */
export const adoptFields: Action<AdoptFieldsInputs> = {
  async needed({ objects, managers }, work) {
    for (const target of objects) {
      const live = await readTarget(work, target);
      if (live && (isTheirs(live, managers) || isRemembered(live))) return true;
    }
    return false;
  },
  async apply({ objects, managers }, work) {
    const adopted: string[] = [];
    try {
      for (const target of objects) if (await adopt(target, managers, work)) adopted.push(nameOf(target));
    } finally {
      if (adopted.length > 0) work.say(`fields are owned by ${MANAGER} now: ${namesByKind(adopted)}`);
    }
  },
  // Who owns a field is put back with the field.
  undo: async () => {},
};

/** Whether anything of it was theirs. */
async function adopt(target: Target, managers: readonly string[], work: Work): Promise<boolean> {
  const { client, signal } = work;
  const kind = await kindOf(client, target);
  for (;;) {
    const live = await readTarget(work, target);
    if (kind === undefined || !live || !(isTheirs(live, managers) || isRemembered(live))) return false;
    const operations: JsonPatchOperation[] = [
      { op: "replace", path: "/metadata/resourceVersion", value: live.metadata.resourceVersion },
      ...(isTheirs(live, managers)
        ? [{ op: "replace" as const, path: "/metadata/managedFields", value: adopted(live, managers) }]
        : []),
      ...(isRemembered(live)
        ? [{ op: "remove" as const, path: `/metadata/annotations/${LAST_APPLIED.replaceAll("/", "~1")}` }]
        : []),
    ];
    try {
      await client.patch(kind, target, { type: "json", operations }, { fieldManager: MANAGER, signal });
      return true;
    } catch (error) {
      // Somebody wrote meanwhile: look again.
      if (!isConflict(error)) throw error;
    }
  }
}

/** What kubectl remembers of a manifest that is no longer the one applied would mislead it. */
const isRemembered = ({ metadata }: KubeObject) => metadata.annotations?.[LAST_APPLIED] !== undefined;

const isOurs = ({ manager, operation, subresource }: ManagedFieldsEntry) =>
  manager === MANAGER && operation === "Apply" && !subresource;

function isTheirs({ metadata }: KubeObject, managers: readonly string[]): boolean {
  return (metadata.managedFields ?? []).some((entry) => mayAdopt(entry, managers));
}

function mayAdopt(entry: ManagedFieldsEntry, managers: readonly string[]): boolean {
  return !entry.subresource && !isOurs(entry) && managers.includes(entry.manager ?? "");
}

function adopted({ apiVersion, metadata }: KubeObject, managers: readonly string[]): ManagedFieldsEntry[] {
  const entries = metadata.managedFields ?? [];
  const mine = entries.filter((entry) => isOurs(entry) || mayAdopt(entry, managers));
  const fieldsV1 = mine.reduce<Fields>((sum, entry) => union(sum, (entry.fieldsV1 ?? {}) as Fields), {});
  const { time } = mine.at(-1) ?? {};
  const ours: ManagedFieldsEntry = {
    manager: MANAGER,
    operation: "Apply",
    apiVersion: mine.at(-1)?.apiVersion ?? apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: "FieldsV1",
    fieldsV1,
  };
  return [...entries.filter((entry) => !mine.includes(entry)), ours];
}

type Fields = { [field: string]: Fields };

function union(a: Fields, b: Fields): Fields {
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return Object.fromEntries(keys.map((key) => [key, union(a[key] ?? {}, b[key] ?? {})]));
}
