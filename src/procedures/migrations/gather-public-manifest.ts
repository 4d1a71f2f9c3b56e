import { groupVersion, type KubeObject, type ResourceKind } from "../../api/object.ts";
import { CONFIG_MAPS, DEPLOYMENTS } from "../../cluster/kinds.ts";
import { undefinedIfNotFound } from "../actions/objects/target.ts";
import type { Observation } from "../observation.ts";
import { manifestObjects } from "../plans/install/edit-manifest.ts";
import { errors } from "../plans/migrations/operator/errors.ts";
import type { ManifestWorkload } from "../plans/migrations/operator/manifest-view.ts";
import { refuseUnmigratable } from "../plans/migrations/operator/migrate-operator.ts";
import {
  AGENT,
  containerIn,
  type LiveManifest,
  mapsReferredTo,
} from "../plans/migrations/public-operator/live-manifest.ts";
import type { PublicManifestFacts } from "../plans/migrations/public-operator/public-steps.ts";
import { upgradePath } from "../plans/upgrade/upgrade-path.ts";
import { mergedFacts, published, type UpgradeSources } from "../upgrade/gather-upgrade.ts";

/** Where files come from if no place was given. */
export const BUILT_IN = "built in";
const NONE_GIVEN = { manifest: false, base: false, values: false, chart: false };

/** Reads what the public operator would read of a plain manifest, and the files that install the operator. */
export async function gatherPublicManifest(
  observation: Observation,
  sources: UpgradeSources,
): Promise<PublicManifestFacts> {
  refuseUnmigratable(observation);
  if (sources.files.from === BUILT_IN) throw errors.MIGRATE_OPERATOR_NO_FILES();
  const { names, service } = observation;
  const { manifests, namespaces } = names;
  const read = (kind: ResourceKind, name: string) =>
    sources.client
      .get<KubeObject>(kind, { namespace: namespaces.orchestratorSystem, name }, { signal: sources.signal })
      .then((object) => ({ ...object, apiVersion: groupVersion(kind), kind: kind.kind }) as KubeObject)
      .catch(undefinedIfNotFound);
  const dataOf = async (name: string) => ((await read(CONFIG_MAPS, name))?.["data"] ?? {}) as Record<string, string>;
  const agents = service.nodeAgents as ManifestWorkload;
  const live: LiveManifest = {
    agents,
    controllers: (await read(DEPLOYMENTS, names.workloads.kubeControllers)) as ManifestWorkload | undefined,
    typha: (await read(DEPLOYMENTS, names.workloads.typha)) as ManifestWorkload | undefined,
    maps: new Map(),
  };
  const maps = await Promise.all(
    mapsReferredTo(agents, names).map(async (name) => [name, await dataOf(name)] as const),
  );
  const path = upgradePath(observation, { given: NONE_GIVEN });
  const file = fileOf(observation, live, path.file as "policyAndNetworking");
  refuseOtherFiles(observation, await sources.files.read(file), file, sources);
  const merged = await mergedFacts(observation, path, file, { take: {}, connection: [] }, sources);
  const { text: _, ...definitions } = await published(sources.files, manifests.operatorCrds);
  const operator = manifestObjects(manifests.operator, await sources.files.read(manifests.operator));
  return {
    file,
    objects: merged.objects,
    edits: merged.edits,
    live: { ...live, maps: new Map(maps) },
    endpointMap: await read(CONFIG_MAPS, names.endpointMap.name),
    definitions,
    operator: operator.filter(({ kind }) => kind !== "CustomResourceDefinition"),
  };
}

/** The file with Typha where Typha runs. */
function fileOf({ names: { manifests } }: Observation, { typha }: LiveManifest, role: "policyAndNetworking"): string {
  const withTypha = role === "policyAndNetworking" ? manifests.policyAndNetworkingTypha : undefined;
  return (typha && withTypha) || manifests[role];
}

/** Files of another release would upgrade in the same run what they migrate. */
function refuseOtherFiles({ service }: Observation, text: string, file: string, { files }: UpgradeSources): void {
  const version = publishedVersion(file, text);
  const runs = service.version ?? "";
  if (version !== undefined && version !== runs) throw errors.MIGRATE_OPERATOR_OTHER_FILES(files.from, version, runs);
}

/** Of the public system's agents in a manifest; undefined where their image does not say. */
export function publishedVersion(file: string, text: string): string | undefined {
  const agents = manifestObjects(file, text).find(({ kind }) => kind === "DaemonSet") as ManifestWorkload | undefined;
  const image = agents && containerIn(agents.spec.template.spec, AGENT)?.image;
  return /:(v\d+\.\d+\.\d+)$/.exec(image ?? "")?.[1];
}
