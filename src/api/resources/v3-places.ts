import { type Names, type Noun, vendorNames } from "../names.ts";
import { groupVersion, type ResourceKind } from "../object.ts";
import { VERSION } from "../tables/release.ts";
import { compareVersions, parseVersion, sameLine } from "../tables/version.ts";
import { RESOURCES } from "./all.ts";
import { placesOf, type Resource } from "./resource.ts";

/** One v3 resource: as people see it, and where it is kept. */
export interface V3Place {
  noun: Noun;
  served: ResourceKind;
  stored: ResourceKind;
  /** A policy: kept under `TIER.NAME`, and only for those who may see its tier. */
  tiered: boolean;
}

/** Kinds that came later than the oldest version the v3 API can stand in for. */
const SINCE: Partial<Record<Noun, string>> = {
  tier: "v3.29",
  stagedNetworkPolicy: "v3.30",
  stagedGlobalNetworkPolicy: "v3.30",
  stagedKubernetesNetworkPolicy: "v3.30",
  bgpFilter: "v3.26",
  nodeStatus: "v3.21",
};

const TIERED: readonly Noun[] = [
  "networkPolicy",
  "globalNetworkPolicy",
  "stagedNetworkPolicy",
  "stagedGlobalNetworkPolicy",
];

/** The resources a version served; where it had no tiers, every policy was in the default one. */
export function v3Resources(version: string = VERSION): Resource[] {
  return RESOURCES.filter(({ api, noun }) => api === "v3" && hasKind(version, noun));
}

export function v3Places(names: Names = vendorNames, version: string = VERSION): V3Place[] {
  return v3Resources(version).map((resource) => v3Place(resource, names));
}

export function v3Place(resource: Resource, names: Names): V3Place {
  return { noun: resource.noun, ...placesOf(resource, names), tiered: TIERED.includes(resource.noun) };
}

function hasKind(version: string, noun: Noun): boolean {
  const running = parseVersion(version);
  const since = parseVersion(SINCE[noun] ?? "");
  return !running || !since || sameLine(running, since) || compareVersions(running, since) > 0;
}

/** By `apiVersion` and kind, in either API. */
export function findPlace<P extends V3Place>(places: readonly P[], apiVersion: string, kind: string): P | undefined {
  return places.find(({ served, stored }) =>
    [served, stored].some((place) => place.kind === kind && groupVersion(place) === apiVersion),
  );
}
