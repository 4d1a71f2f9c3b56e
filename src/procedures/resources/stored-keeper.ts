import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { type V3Place, v3Places } from "../../api/resources/v3-places.ts";
import { Translator } from "../../api/resources/v3-translate.ts";
import type { StatusError } from "../../api/status.ts";
import type { Client } from "../../cluster/client.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../../cluster/failures.ts";
import { conflictsIn } from "../actions/objects/apply-objects.ts";
import { errors } from "./errors.ts";
import { type Keeper, WriteConflict } from "./kept-store.ts";
import { printedName } from "./resource-store.ts";

/** The definitions v3 resources are stored under, for clusters where no aggregated API is up. */
export function storedKeeper(client: Client, names: Names, version: string, signal?: AbortSignal): Keeper {
  const translator = new Translator(v3Places(names), version, names);
  const served = (place: V3Place, object: KubeObject) => translator.toServed(place, object);
  const stored = (place: V3Place, object: KubeObject) => translator.toStored(place, structuredClone(object));
  const fieldManager = "vendorctl";

  const apply = async (place: V3Place, object: KubeObject, options: { dryRun: boolean; force: boolean }) => {
    try {
      const { resourceVersion: _, uid: __, ...metadata } = object.metadata;
      const config = stored(place, { ...object, metadata });
      return served(place, await client.apply<KubeObject>(place.stored, config, { ...options, fieldManager, signal }));
    } catch (error) {
      if (!isConflict(error)) throw error;
      const fields = conflictsIn(error as StatusError).join("; ");
      throw errors.RESOURCE_CONFLICT(printedName(place, object.metadata.name), fields).from(error);
    }
  };

  return {
    from: `the CRDs in ${names.groups.stored.group}, because ${names.groups.served.group} is not served`,
    async find(place, { name, namespace }) {
      const ref = { name: translator.storedName(place, name), namespace };
      try {
        return served(place, await client.get<KubeObject>(place.stored, ref, { signal }));
      } catch (error) {
        if (isNotFound(error)) return undefined;
        throw error;
      }
    },
    async all(place, namespace) {
      const { items } = await client.list<KubeObject>(place.stored, { namespace, signal });
      return items.map((item) => served(place, item));
    },
    preview: (place, object, _old, force) => apply(place, object, { dryRun: true, force }),
    apply(place, { config, wanted, force }) {
      // Defaults follow from the fields that were applied, so the same manager owns them.
      const given = (config["spec"] ?? {}) as Record<string, unknown>;
      const filled = (wanted["spec"] ?? {}) as Record<string, unknown>;
      const spec = {
        ...given,
        ...pick(
          filled,
          DEFAULTED.filter((field) => given[field] === undefined),
        ),
      };
      return apply(place, { ...config, spec }, { dryRun: false, force });
    },
    async replace(place, object) {
      try {
        return served(
          place,
          await client.replace<KubeObject>(place.stored, stored(place, object), { fieldManager, signal }),
        );
      } catch (error) {
        if (isConflict(error) || isAlreadyExists(error)) throw new WriteConflict();
        throw error;
      }
    },
    async remove(place, { metadata }) {
      const { name, namespace, uid, resourceVersion } = metadata;
      const ref = { name: translator.storedName(place, name), namespace };
      const preconditions = { uid: translator.uid(uid ?? ""), resourceVersion };
      await client.delete(place.stored, ref, { preconditions, signal }).catch((error: unknown) => {
        if (isConflict(error)) throw new WriteConflict();
        if (!isNotFound(error)) throw error;
      });
    },
  };
}

/** Fields the v3 API fills in where they are left out. */
const DEFAULTED = [
  "tier",
  "types",
  "order",
  "defaultAction",
  "blockSize",
  "vxlanMode",
  "ipipMode",
  "nodeSelector",
  "allowedUses",
  "assignmentMode",
];

function pick(from: Record<string, unknown>, fields: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(fields.filter((field) => from[field] !== undefined).map((field) => [field, from[field]]));
}
