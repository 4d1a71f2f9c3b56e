import type { Noun } from "../names.ts";
import { vendorNames } from "../names.ts";
import type { KubeObject } from "../object.ts";
import { groupVersion } from "../object.ts";
import { RESOURCES } from "../resources/all.ts";
import type { BGPConfiguration } from "../resources/bgp-configuration.ts";
import type { BGPFilter } from "../resources/bgp-filter.ts";
import type { BGPPeer } from "../resources/bgp-peer.ts";
import type { DataplaneConfiguration } from "../resources/dataplane-configuration.ts";
import type { FlowLogs } from "../resources/flow-logs.ts";
import type { HostEndpoint } from "../resources/host-endpoint.ts";
import type { Installation } from "../resources/installation.ts";
import type { IPPool } from "../resources/ip-pool.ts";
import type { IPReservation } from "../resources/ip-reservation.ts";
import type { KubeControllersConfiguration } from "../resources/kube-controllers-configuration.ts";
import type { GlobalNetworkPolicy, NetworkPolicy } from "../resources/network-policy.ts";
import type { NetworkSet } from "../resources/network-set.ts";
import type { NodeStatus } from "../resources/node-status.ts";
import type { Profile } from "../resources/profile.ts";
import { objectSchema, placesOf, type Resource } from "../resources/resource.ts";
import type {
  StagedGlobalNetworkPolicy,
  StagedKubernetesNetworkPolicy,
  StagedNetworkPolicy,
} from "../resources/staged-policy.ts";
import type { Tier } from "../resources/tier.ts";
import { FIXED_VALUES } from "../tables/fixed-values.ts";
import { REFUSED_FIELDS } from "../tables/refused-fields.ts";
import { bgpConfigurationProblems, bgpFilterProblems, bgpPeerProblems, nodeStatusProblems } from "./bgp.ts";
import { DATAPLANE_PROBLEMS, dataplaneConfigurationProblems } from "./dataplane-configuration.ts";
import { serviceProxyProblems } from "./ebpf.ts";
import { endpointMapProblems } from "./endpoint-map.ts";
import type { ClusterFacts } from "./facts.ts";
import { flowExportProblems, flowResourceProblems } from "./flow-resources.ts";
import { hostEndpointProblems } from "./host-endpoint.ts";
import { installationProblems } from "./installation.ts";
import { ipPoolProblems } from "./ip-pool.ts";
import { ipReservationProblems } from "./ip-reservation.ts";
import { kubeControllersConfigurationProblems } from "./kube-controllers-configuration.ts";
import { networkSetProblems, profileProblems } from "./network-set.ts";
import { globalNetworkPolicyProblems, networkPolicyProblems } from "./policy.ts";
import { type Problem, reporters } from "./problem.ts";
import { stagedKubernetesPolicyProblems, stagedPolicyProblems } from "./staged-policy.ts";
import { structureProblems } from "./structure.ts";
import { tierProblems } from "./tier.ts";
import { singletonProblems, VALUE_PROBLEMS } from "./values.ts";
import { partOverridesProblems } from "./workload-overrides.ts";

const at = reporters(VALUE_PROBLEMS);
const dataplaneAt = reporters({ VALUE_WITHOUT_EFFECT: DATAPLANE_PROBLEMS.VALUE_WITHOUT_EFFECT });

/**
 * Everything wrong with an object of ours, or with the endpoint map: first what its schema says, then the rules no
 * schema can express. Facts about the cluster allow more rules to be checked; none are needed.
 */
export function validateObject(object: KubeObject, facts: ClusterFacts = {}): Problem[] {
  if (object.kind === "ConfigMap" && object.apiVersion === "v1") return endpointMapProblems(object, facts);
  const resource = resourceOf(object);
  if (!resource) {
    const message = `There is no resource ${object.kind} in ${object.apiVersion}.`;
    return [at.UNKNOWN_KIND("kind", message)];
  }
  const structure = structureProblems(objectSchema(resource), object, REFUSED_FIELDS[resource.noun]);
  const readable = withoutIllTyped(object, structure);
  return [...structure, ...ruleProblemsOf(resource.noun, readable, facts), ...fixedProblems(resource.noun, readable)];
}

/** A value that would be stored and change nothing. */
function fixedProblems(noun: Noun, object: unknown): Problem[] {
  return Object.entries(FIXED_VALUES[noun] ?? {}).flatMap(([path, { value, because }]) => {
    const given = path.split(".").reduce<unknown>((at, step) => (isFields(at) ? at[step] : undefined), object);
    if (given === undefined || given === value) return [];
    return [dataplaneAt.VALUE_WITHOUT_EFFECT(path, `${path} can only be ${value} in this release. ${because}`)];
  });
}

function resourceOf(object: KubeObject): Resource | undefined {
  return RESOURCES.find((resource) => {
    const { stored, served } = placesOf(resource, vendorNames);
    return [stored, served].some((place) => place.kind === object.kind && groupVersion(place) === object.apiVersion);
  });
}

/** The schema has vouched for the types, so each kind's rules may read the object as that kind. */
function ruleProblemsOf(noun: Noun, object: unknown, facts: ClusterFacts): Problem[] {
  switch (noun) {
    case "installation":
      return installationProblems(object as Installation, facts);
    case "dataplaneConfiguration": {
      const config = object as DataplaneConfiguration;
      const cleanup = config.spec.bpfServiceProxyIptablesCleanupEnabled;
      const conflicts = config.spec.bpfEnabled ? serviceProxyProblems(facts, cleanup) : [];
      return [...dataplaneConfigurationProblems(config, facts), ...conflicts];
    }
    case "kubeControllersConfiguration":
      return kubeControllersConfigurationProblems(object as KubeControllersConfiguration);
    case "hostEndpoint":
      return hostEndpointProblems(object as HostEndpoint);
    case "networkPolicy":
      return networkPolicyProblems(object as NetworkPolicy);
    case "globalNetworkPolicy":
      return globalNetworkPolicyProblems(object as GlobalNetworkPolicy);
    case "stagedNetworkPolicy":
      return stagedPolicyProblems(object as StagedNetworkPolicy, networkPolicyProblems);
    case "stagedGlobalNetworkPolicy":
      return stagedPolicyProblems(object as StagedGlobalNetworkPolicy, globalNetworkPolicyProblems);
    case "stagedKubernetesNetworkPolicy":
      return stagedKubernetesPolicyProblems(object as StagedKubernetesNetworkPolicy);
    case "networkSet":
    case "globalNetworkSet":
      return networkSetProblems(object as NetworkSet);
    case "profile":
      return profileProblems(object as Profile);
    case "tier":
      return tierProblems(object as Tier);
    case "ipPool":
      return ipPoolProblems(object as IPPool);
    case "ipReservation":
      return ipReservationProblems(object as IPReservation);
    case "bgpConfiguration":
      return bgpConfigurationProblems(object as BGPConfiguration);
    case "bgpPeer":
      return bgpPeerProblems(object as BGPPeer);
    case "bgpFilter":
      return bgpFilterProblems(object as BGPFilter);
    case "nodeStatus":
      return nodeStatusProblems(object as NodeStatus);
    case "flowLogs":
    case "flowUI": {
      const { metadata, spec } = object as Part;
      const exporting = noun === "flowLogs" ? flowExportProblems((object as FlowLogs).spec) : [];
      return [...flowResourceProblems(metadata.name, facts), ...exporting, ...partOverridesProblems(noun, spec)];
    }
    case "apiServer": {
      const { metadata, spec } = object as Part;
      return [...singletonProblems(metadata.name), ...partOverridesProblems(noun, spec)];
    }
    case "clusterInformation":
    case "ipamConfiguration":
      return singletonProblems((object as KubeObject).metadata.name);
    // Written by the service itself, under names it chooses.
    case "status":
    case "ipamBlock":
    case "blockAffinity":
    case "ipamHandle":
      return [];
  }
}

type Part = KubeObject & { spec?: Record<string, unknown> };
type Fields = Record<string, unknown>;

/**
 * A copy the rules can read without tripping: what has the wrong type is left out, a list with such an item as a whole,
 * so that the places of the others in their lists stay what the user wrote.
 */
function withoutIllTyped(object: KubeObject, problems: readonly Problem[]): Fields {
  const copy = structuredClone(object) as Fields;
  for (const { code, path } of problems) {
    if (code === "WRONG_TYPE") remove(copy, (path.split("[")[0] ?? "").split("."));
  }
  const metadata = isFields(copy["metadata"]) ? copy["metadata"] : {};
  const name = typeof metadata["name"] === "string" ? metadata["name"] : "";
  return { ...copy, metadata: { ...metadata, name }, spec: isFields(copy["spec"]) ? copy["spec"] : {} };
}

function remove(object: Fields, path: readonly string[]): void {
  const [first = "", ...rest] = path;
  const inner = object[first];
  if (rest.length === 0 || !isFields(inner)) delete object[first];
  else remove(inner, rest);
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
