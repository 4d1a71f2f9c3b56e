import type { Names } from "../../api/names.ts";
import { groupVersion, type ObjectRef, parseGroupVersion, type ResourceKind } from "../../api/object.ts";
import { servedPolicyName, storedPolicyName } from "../../api/resources/policy-names.ts";
import { findPlace, v3Places } from "../../api/resources/v3-places.ts";
import type { Client } from "../../cluster/client.ts";
import type { OwnedThroughV3 } from "../observation.ts";

/** Where a saved object is written now. */
export interface Place {
  kind: ResourceKind;
  ref: ObjectRef;
  /** False for v3 resources: what they show as their UID is just what changes. */
  sameUid: boolean;
}

/**
 * A v3 resource is written where people use it, or as it is stored where nothing serves it. Undefined: the server has no such kind any
 * more, so neither has it the object.
 */
export async function livingPlaces(
  client: Client,
  names: Names,
): Promise<(entry: OwnedThroughV3) => Place | undefined> {
  const resources = await client.resources();
  const places = v3Places(names);
  return ({ apiVersion, kind, name, namespace }) => {
    const v3 = findPlace(places, apiVersion, kind);
    if (v3) {
      const served = resources.some((one) => one.group === v3.served.group && one.kind === v3.served.kind);
      const called = served ? servedPolicyName(name) : storedPolicyName(name);
      const ref = { name: v3.tiered ? called : name, namespace };
      return { kind: served ? v3.served : v3.stored, ref, sameUid: false };
    }
    const { group } = parseGroupVersion(apiVersion);
    const same = resources.filter((one) => one.group === group && one.kind === kind);
    const found = same.find((one) => groupVersion(one) === apiVersion) ?? same.find(({ preferred }) => preferred);
    return found && { kind: found, ref: { name, namespace }, sameUid: true };
  };
}
