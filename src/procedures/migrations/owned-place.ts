import type { Names } from "../../api/names.ts";
import { groupVersion, type ObjectRef, parseGroupVersion, type ResourceKind } from "../../api/object.ts";
import { servedPolicyName } from "../../api/policy-names.ts";
import { findPlace, v3Places } from "../../api/v3-places.ts";
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
 * A v3 resource that was found as it is stored is written where people use it, if that is served by now. Undefined: the server has
 * no such kind any more, so neither has it the object.
 */
export async function livingPlaces(
  client: Client,
  names: Names,
): Promise<(entry: OwnedThroughV3) => Place | undefined> {
  const resources = await client.resources();
  const places = v3Places(names);
  return ({ apiVersion, kind, name, namespace }) => {
    const v3 = findPlace(places, apiVersion, kind);
    if (v3 && resources.some((one) => one.group === v3.served.group && one.kind === v3.served.kind)) {
      return { kind: v3.served, ref: { name: v3.tiered ? servedPolicyName(name) : name, namespace }, sameUid: false };
    }
    const { group } = parseGroupVersion(apiVersion);
    const same = resources.filter((one) => one.group === group && one.kind === kind);
    const found = same.find((one) => groupVersion(one) === apiVersion) ?? same.find(({ preferred }) => preferred);
    return found && { kind: found, ref: { name, namespace }, sameUid: v3 === undefined };
  };
}
