import type { Names } from "../../api/names.ts";
import type { KubeObject, ObjectRef } from "../../api/object.ts";
import type { V3Place } from "../../api/resources/v3-places.ts";
import type { StatusError } from "../../api/status.ts";
import type { Client } from "../../cluster/client.ts";
import { isConflict, isNotFound } from "../../cluster/failures.ts";
import { conflictsIn } from "../actions/objects/apply-objects.ts";
import { clusterVersionOf } from "./cluster-version.ts";
import { errors } from "./errors.ts";
import { printedName, type ResourceStore, type Written } from "./resource-store.ts";

/** Through the aggregated v3 API, which validates, fills in defaults and translates by itself. */
export function servedStore(client: Client, names: Names, signal?: AbortSignal): ResourceStore {
  const get = (place: V3Place, ref: ObjectRef) =>
    client.get<KubeObject>(place.served, ref, { signal }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
  const written = async (
    before: KubeObject | undefined,
    dryRun: boolean,
    write: (onWarning: (text: string) => void) => Promise<KubeObject>,
  ): Promise<Written> => {
    const warnings: string[] = [];
    const object = await write((text) => void warnings.push(text));
    return { object, outcome: outcomeOf(before, object, dryRun), warnings };
  };
  return {
    from: `the API ${names.groups.served.group}/${names.groups.served.version}`,
    list: async (place, options = {}) => (await client.list<KubeObject>(place.served, { ...options, signal })).items,
    get,
    async apply(place, object, { dryRun = false, force = false } = {}) {
      const before = await get(place, object.metadata);
      try {
        const options = { dryRun, force, fieldManager: "vendorctl", fieldValidation: "Strict" as const, signal };
        const apply = (onWarning: (text: string) => void) =>
          client.apply<KubeObject>(place.served, object, { ...options, onWarning });
        return await written(before, dryRun, apply);
      } catch (error) {
        if (!isConflict(error) || force) throw error;
        const fields = conflictsIn(error as StatusError).join("; ");
        throw errors.RESOURCE_CONFLICT(printedName(place, object.metadata.name), fields).from(error);
      }
    },
    async patch(place, ref, patch, { dryRun = false } = {}) {
      const before = await get(place, ref);
      if (!before) throw errors.RESOURCE_NOT_FOUND(printedName(place, ref.name));
      const options = { dryRun, fieldManager: "vendorctl", fieldValidation: "Strict" as const, signal };
      return await written(before, dryRun, (onWarning) =>
        client.patch<KubeObject>(place.served, ref, patch, { ...options, onWarning }),
      );
    },
    async delete(place, ref, { dryRun = false } = {}) {
      try {
        await client.delete(place.served, ref, { dryRun, signal });
        return true;
      } catch (error) {
        if (isNotFound(error)) return false;
        throw error;
      }
    },
    version: () => clusterVersionOf((place, ref) => get(place, ref), names),
  };
}

/** A dry run gives an object the version it would have; only the user's fields show whether it would change. */
function outcomeOf(before: KubeObject | undefined, after: KubeObject, dryRun: boolean): Written["outcome"] {
  if (!before) return "created";
  const same = dryRun
    ? essence(before) === essence(after)
    : before.metadata.resourceVersion === after.metadata.resourceVersion;
  return same ? "unchanged" : "configured";
}

function essence({ metadata, ...rest }: KubeObject): string {
  const { labels = {}, annotations = {}, ownerReferences = [], finalizers = [] } = metadata;
  return sorted({ ...rest, labels, annotations, ownerReferences, finalizers });
}

function sorted(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
