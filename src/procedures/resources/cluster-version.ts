import type { Names } from "../../api/names.ts";
import type { KubeObject, ObjectRef } from "../../api/object.ts";
import { type V3Place, v3Places } from "../../api/resources/v3-places.ts";
import { VERSION } from "../../api/tables/release.ts";
import { parseVersion, sameLine } from "../../api/tables/version.ts";
import { fieldAt } from "../field-at.ts";
import { errors } from "./errors.ts";
import type { ResourceStore } from "./resource-store.ts";

/** The version in ClusterInformation, in either datastore. */
export async function clusterVersionOf(
  get: (place: V3Place, ref: ObjectRef) => Promise<KubeObject | undefined>,
  names: Names,
): Promise<string | undefined> {
  const place = v3Places(names).find(({ noun }) => noun === "clusterInformation")!;
  const version = fieldAt(await get(place, { name: names.singleton }), names.fields.clusterVersion);
  return typeof version === "string" && version !== "" ? version : undefined;
}

/** Upgrade rule 2: tools of other versions must not write. A cluster that does not say its version cannot be compared. */
export async function refuseOtherVersions(store: ResourceStore, names: Names): Promise<void> {
  const cluster = await store.version();
  const [theirs, ours] = [parseVersion(cluster ?? ""), parseVersion(VERSION)];
  if (!cluster || !theirs || !ours || sameLine(theirs, ours)) return;
  throw errors.TOOL_VERSION_MISMATCH(names.dialect === "vendor" ? names.tool : "vendorctl", VERSION, cluster);
}
