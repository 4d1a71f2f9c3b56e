import type { Names, Noun } from "../../api/names.ts";
import type { KubeObject, ResourceKind } from "../../api/object.ts";
import type { Pod, Workload } from "../../api/workload-objects.ts";
import {
  API_SERVICES,
  CONFIG_MAPS,
  CRDS,
  DAEMON_SETS,
  DEPLOYMENTS,
  ENDPOINT_SLICES,
  LEASES,
  NAMESPACES,
  NETWORK_POLICIES,
  NODES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  SECRETS,
  SERVICES,
} from "../../cluster/kinds.ts";
import type { Reader } from "./reader.ts";

/** Everything an observation is made of, as the API server gave it. */
export interface ClusterObjects {
  nodes: readonly KubeObject[];
  namespaces: readonly KubeObject[];
  definitions: readonly KubeObject[];
  daemonSets: readonly Workload[];
  services: readonly KubeObject[];
  policies: readonly KubeObject[];
  budgets: readonly KubeObject[];
  /** Of the orchestrator's system namespace. */
  configMaps: readonly KubeObject[];
  clusterInfo: KubeObject | undefined;
  endpointMaps: readonly KubeObject[];
  injectors: readonly KubeObject[];
  operators: readonly Workload[];
  apiServiceOfV3: KubeObject | undefined;
  apiEndpoints: readonly KubeObject[];
  lease: KubeObject | undefined;
  operatorLease: KubeObject | undefined;
  ours: Readonly<Record<ObservedNoun, readonly KubeObject[]>>;
  /** What the enterprise platform says of itself. */
  infrastructure: KubeObject | undefined;
  platformNetwork: KubeObject | undefined;
  agentPods: readonly Pod[];
  releases: readonly KubeObject[];
}

const OPERATOR_NOUNS = ["installation", "apiServer", "flowLogs", "flowUI", "status"] as const;
const V3_NOUNS = [
  "dataplaneConfiguration",
  "kubeControllersConfiguration",
  "clusterInformation",
  "ipPool",
  "hostEndpoint",
  "globalNetworkPolicy",
  "networkPolicy",
  "tier",
  "profile",
] as const;
export const OBSERVED_NOUNS = [...OPERATOR_NOUNS, ...V3_NOUNS] as const;
export type ObservedNoun = (typeof OBSERVED_NOUNS)[number];

const NAMESPACED: readonly Noun[] = ["networkPolicy"];

const LEASE_NAME = "vendorctl";

/** A bounded number of lists, all at once; only what depends on what was found is asked afterwards. */
export async function readCluster(reader: Reader, names: Names): Promise<ClusterObjects> {
  const { namespaces, endpointMap, manifests, workloads, groups } = names;
  const called = (name: string) => ({ fieldSelector: `metadata.name=${name}` });
  const system = { namespace: namespaces.orchestratorSystem };
  const first = {
    nodes: reader.list(NODES),
    namespaces: reader.list(NAMESPACES),
    definitions: reader.list(CRDS),
    daemonSets: reader.list<Workload>(DAEMON_SETS),
    services: reader.list(SERVICES),
    policies: reader.list(NETWORK_POLICIES),
    budgets: reader.list(POD_DISRUPTION_BUDGETS),
    configMaps: reader.list(CONFIG_MAPS, system),
    clusterInfo: reader.get(CONFIG_MAPS, { namespace: "kube-public", name: "cluster-info" }),
    endpointMaps: reader.list(CONFIG_MAPS, called(endpointMap.name)),
    injectors: reader.list(CONFIG_MAPS, called(manifests.sidecarInjectorMap)),
    operators: reader.list<Workload>(DEPLOYMENTS, called(workloads.operator)),
    apiServiceOfV3: reader.get(API_SERVICES, { name: `${groups.served.version}.${groups.served.group}` }),
    apiEndpoints: reader.list(ENDPOINT_SLICES, {
      namespace: "default",
      labelSelector: "kubernetes.io/service-name=kubernetes",
    }),
    lease: reader.get(LEASES, { ...system, name: LEASE_NAME }),
    // The lease of our own operator has the name of its Deployment.
    operatorLease: reader.getIfAllowed(LEASES, { namespace: namespaces.operator, name: workloads.operator }),
  };
  const seen = await all(first);
  const defined = new Set(seen.definitions.map(({ metadata }) => metadata.name));
  const second = await all({
    ours: readOurs(reader, names, defined, seen.apiServiceOfV3 !== undefined),
    infrastructure: readPlatform(reader, defined, "Infrastructure", "infrastructures"),
    platformNetwork: readPlatform(reader, defined, "Network", "networks"),
    agentPods: readAgentPods(reader, names, seen.daemonSets),
    releases: readReleases(reader, seen.operators),
  });
  return { ...seen, ...second };
}

async function all<T extends Record<string, Promise<unknown>>>(asked: T): Promise<{ [K in keyof T]: Awaited<T[K]> }> {
  const entries = Object.entries(asked);
  const values = await Promise.all(entries.map(([, promise]) => promise));
  return Object.fromEntries(entries.map(([key], index) => [key, values[index]])) as { [K in keyof T]: Awaited<T[K]> };
}

/** What is stored is read where it is stored: it is there even while the API in front of it is away. */
async function readOurs(
  reader: Reader,
  names: Names,
  defined: ReadonlySet<string>,
  served: boolean,
): Promise<Record<ObservedNoun, KubeObject[]>> {
  const lists = OBSERVED_NOUNS.map(async (noun) => {
    const stored = storedKindOf(names, noun);
    if (defined.has(`${stored.plural}.${stored.group}`)) return [noun, await reader.list(stored)] as const;
    // With another datastore the definitions are nowhere, and the API in front of it may still be there.
    const { kind, plural } = names.kinds[noun];
    const elsewhere = served && stored.group === names.groups.stored.group;
    const asServed = { ...names.groups.served, kind, plural, namespaced: stored.namespaced };
    return [noun, elsewhere ? await reader.list(asServed) : []] as const;
  });
  return Object.fromEntries(await Promise.all(lists)) as Record<ObservedNoun, KubeObject[]>;
}

function storedKindOf(names: Names, noun: ObservedNoun): ResourceKind {
  const { kind, plural, stored } = names.kinds[noun];
  const operator = (OPERATOR_NOUNS as readonly string[]).includes(noun);
  const place = operator ? names.groups.operator : names.groups.stored;
  return { ...place, kind, plural, ...(operator ? {} : stored), namespaced: NAMESPACED.includes(noun) };
}

async function readPlatform(
  reader: Reader,
  defined: ReadonlySet<string>,
  kind: string,
  plural: string,
): Promise<KubeObject | undefined> {
  const group = "config.openshift.io";
  if (!defined.has(`${plural}.${group}`)) return undefined;
  return await reader.get({ group, version: "v1", kind, plural, namespaced: false }, { name: "cluster" });
}

export function nodeAgentsAmong(daemonSets: readonly Workload[], names: Names): Workload | undefined {
  const { node, overlayNode } = names.workloads;
  const { system, orchestratorSystem } = names.namespaces;
  const places = [system, orchestratorSystem];
  const found = daemonSets.filter(({ metadata }) => metadata.name === node || metadata.name === overlayNode);
  const rank = ({ metadata }: Workload) => (places.indexOf(metadata.namespace ?? "") + 3) % 3;
  return found.sort((a, b) => rank(a) - rank(b))[0];
}

async function readAgentPods(reader: Reader, names: Names, daemonSets: readonly Workload[]): Promise<Pod[]> {
  const agents = nodeAgentsAmong(daemonSets, names);
  const selector = (agents?.spec as { selector?: { matchLabels?: Record<string, string> } } | undefined)?.selector;
  const labels = Object.entries(selector?.matchLabels ?? {});
  if (!agents || labels.length === 0) return [];
  return await reader.list<Pod>(PODS, {
    namespace: agents.metadata.namespace,
    labelSelector: labels.map(([key, value]) => `${key}=${value}`).join(","),
  });
}

/** The chart tool labels what it created, and keeps a record of the release. */
async function readReleases(reader: Reader, operators: readonly Workload[]): Promise<KubeObject[]> {
  const marks = operators[0]?.metadata.annotations ?? {};
  const [name, namespace] = [marks["meta.helm.sh/release-name"], marks["meta.helm.sh/release-namespace"]];
  if (!name || !namespace) return [];
  return await reader.list(SECRETS, { namespace, labelSelector: `owner=helm,name=${name}` });
}
