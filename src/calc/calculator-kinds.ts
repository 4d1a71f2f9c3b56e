import type { Names } from "../api/names.ts";
import type { KubeObject, ResourceKind } from "../api/object.ts";
import { parseGroupVersion } from "../api/object.ts";
import { bgpConfiguration } from "../api/resources/bgp-configuration.ts";
import { dataplaneConfiguration } from "../api/resources/dataplane-configuration.ts";
import { hostEndpoint } from "../api/resources/host-endpoint.ts";
import { ipPool } from "../api/resources/ip-pool.ts";
import { blockAffinity, ipamBlock } from "../api/resources/ipam.ts";
import { globalNetworkPolicy, networkPolicy } from "../api/resources/network-policy.ts";
import { globalNetworkSet, networkSet } from "../api/resources/network-set.ts";
import { profile } from "../api/resources/profile.ts";
import { placesOf, type Resource } from "../api/resources/resource.ts";
import { tier } from "../api/resources/tier.ts";

/** What the calculation reads of one kind, by the name it has inside. */
export type InputName = keyof typeof ORCHESTRATORS | keyof typeof OURS;

const core = (kind: string, plural: string, namespaced: boolean): ResourceKind => ({
  group: "",
  version: "v1",
  kind,
  plural,
  namespaced,
});

const ORCHESTRATORS = {
  pods: core("Pod", "pods", true),
  namespaces: core("Namespace", "namespaces", false),
  serviceAccounts: core("ServiceAccount", "serviceaccounts", true),
  nodes: core("Node", "nodes", false),
  services: core("Service", "services", true),
  kubernetesPolicies: {
    group: "networking.k8s.io",
    version: "v1",
    kind: "NetworkPolicy",
    plural: "networkpolicies",
    namespaced: true,
  },
  endpointSlices: {
    group: "discovery.k8s.io",
    version: "v1",
    kind: "EndpointSlice",
    plural: "endpointslices",
    namespaced: true,
  },
} as const satisfies Record<string, ResourceKind>;

const OURS = {
  networkPolicies: networkPolicy,
  globalNetworkPolicies: globalNetworkPolicy,
  tiers: tier,
  profiles: profile,
  networkSets: networkSet,
  globalNetworkSets: globalNetworkSet,
  hostEndpoints: hostEndpoint,
  pools: ipPool,
  blocks: ipamBlock,
  affinities: blockAffinity,
  configurations: dataplaneConfiguration,
  bgpConfigurations: bgpConfiguration,
} as const satisfies Record<string, Resource>;

/** What the calculation reads, but no verdict rests on. */
export const NOT_OF_VERDICTS: readonly InputName[] = ["services", "affinities", "bgpConfigurations"];

/** Every kind the calculator takes; the caller watches these, each as it is stored. */
export function calculatorKinds(names: Names): Map<InputName, ResourceKind> {
  const ours = Object.entries(OURS).map(([name, resource]) => [name, placesOf(resource, names).stored] as const);
  return new Map<InputName, ResourceKind>([...Object.entries(ORCHESTRATORS), ...ours] as [InputName, ResourceKind][]);
}

/** Finds which input an object is; undefined for kinds the calculation does not read. */
export function inputNames(names: Names): (kind: { group: string; kind: string }) => InputName | undefined {
  const byKind = new Map([...calculatorKinds(names)].map(([name, { group, kind }]) => [`${group}/${kind}`, name]));
  return ({ group, kind }) => byKind.get(`${group}/${kind}`);
}

export function kindOf({ apiVersion, kind }: KubeObject): { group: string; kind: string } {
  return { group: parseGroupVersion(apiVersion).group, kind };
}
