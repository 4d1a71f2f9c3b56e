import { vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import type { InstallationSpec } from "../api/resources/installation.ts";
import type { IPPool } from "../api/resources/ip-pool.ts";
import { ipPools } from "./render/ip-pools.ts";
import { ownLabels } from "./render/metadata.ts";

/** The pools of an accepted installation, as the operator wants them; nothing else about the cluster matters to them. */
export function poolObjects(spec: InstallationSpec): (IPPool & KubeObject)[] {
  return ipPools({ installation: spec, names: vendorNames }).map((pool) => ({
    ...(pool as IPPool & KubeObject),
    metadata: { ...pool.metadata, labels: ownLabels("ippools") },
  }));
}
