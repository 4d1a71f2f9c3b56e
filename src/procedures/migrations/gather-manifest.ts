import type { Observation } from "../observation.ts";
import { manifestObjects } from "../plans/install/edit-manifest.ts";
import { refuseUnmigratable } from "../plans/migrations/operator/migrate-operator.ts";
import type { ManifestFacts } from "../plans/migrations/operator/migrate-steps.ts";
import { upgradePath } from "../plans/upgrade/upgrade-path.ts";
import { mergedFacts, published, type UpgradeSources } from "../upgrade/gather-upgrade.ts";

const NONE_GIVEN = { manifest: false, base: false, values: false, chart: false };

/** Reads what a manifest's migration is decided from: the manifest as it is in the cluster, and what installs the operator. */
export async function gatherManifest(observation: Observation, sources: UpgradeSources): Promise<ManifestFacts> {
  refuseUnmigratable(observation);
  const { names } = observation;
  const path = upgradePath(observation, { given: NONE_GIVEN });
  const file = names.manifests[path.file as "policyAndNetworking"];
  const merged = await mergedFacts(observation, path, file, { take: {}, connection: [] }, sources);
  const { text: _, ...definitions } = await published(sources.files, names.manifests.operatorCrds);
  const operator = await sources.files.read(names.manifests.operator);
  return {
    file,
    objects: merged.objects,
    edits: merged.edits,
    definitions,
    operator: manifestObjects(names.manifests.operator, operator),
  };
}
