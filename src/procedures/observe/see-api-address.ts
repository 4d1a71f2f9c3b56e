import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { readYaml } from "../../api/protocol/kube-proxy-mode.ts";
import { ENDPOINT_RULES, type EndpointRule } from "../../api/tables/endpoint-rules.ts";
import { endpointMapProblems } from "../../api/validation/endpoint-map.ts";
import type { ClusterFacts } from "../../api/validation/facts.ts";
import { kindOf } from "../cluster-facts.ts";
import type { ApiAddressSource, Observation, SeenApiAddress } from "../observation.ts";
import type { ClusterObjects } from "./cluster-objects.ts";

interface Found {
  host: string;
  port: string;
  source: ApiAddressSource;
  /** Where it was found, in words. */
  from: string;
}

type Basis = Omit<SeenApiAddress, "candidates">;

/** What the cluster says of its networks and of the API servers behind its own service. */
export function seeNetworks(seen: ClusterObjects): Basis {
  const service = seen.services.find(
    ({ metadata }) => metadata.namespace === "default" && metadata.name === "kubernetes",
  );
  const spec = (service?.["spec"] ?? {}) as { clusterIPs?: string[]; clusterIP?: string };
  const { networking = {} } = bootstrapConfiguration(seen) ?? {};
  const network = (seen.platformNetwork?.["spec"] ?? {}) as {
    clusterNetwork?: { cidr: string }[];
    serviceNetwork?: string[];
  };
  return {
    clusterIPs: spec.clusterIPs ?? (spec.clusterIP ? [spec.clusterIP] : []),
    servers: apiServers(seen.apiEndpoints),
    serviceCidrs: network.serviceNetwork ?? listed(networking.serviceSubnet),
    podCidrs: network.clusterNetwork?.map(({ cidr }) => cidr) ?? listed(networking.podSubnet),
    dnsDomain: networking.dnsDomain ?? "cluster.local",
  };
}

/**
 * Every address the API server might be reached by, each evaluated by the rules of the endpoint map: those with nothing against
 * them first, and among equals those from the cluster's configuration before those that only happen to work.
 */
export function seeCandidates(
  seen: ClusterObjects,
  facts: ClusterFacts,
  observed: Pick<Observation, "kind" | "names" | "server"> & { ground: Basis; endpointMap: KubeObject | undefined },
): SeenApiAddress["candidates"] {
  const { names, ground } = observed;
  const byAddress = new Map<string, Found[]>();
  for (const one of findAll(seen, observed)) {
    const key = `${one.host} ${one.port}`;
    byAddress.set(key, [...(byAddress.get(key) ?? []), one]);
  }
  const judged = [...byAddress.values()].map((found) => {
    const { host, port } = found[0] as Found;
    const from = found.map((one) => one.from).join("; ");
    const sources = found.map(({ source }) => source);
    return { host, port, from, sources, against: against({ host, port }, facts, ground, names) };
  });
  return judged.sort((a, b) => Number(a.against.length > 0) - Number(b.against.length > 0));
}

function findAll(
  seen: ClusterObjects,
  observed: Pick<Observation, "kind" | "names" | "server"> & { ground: Basis; endpointMap: KubeObject | undefined },
): Found[] {
  const { names, server, ground, endpointMap } = observed;
  const found: Found[] = [];
  const add = (source: ApiAddressSource, from: string, place: { host?: string; port?: string } | undefined) => {
    if (place?.host && place.port) found.push({ host: place.host, port: place.port, source, from });
  };
  const data = (endpointMap?.["data"] ?? {}) as Record<string, string>;
  add("endpointMap", `ConfigMap ${names.endpointMap.name}`, {
    host: data[names.endpointMap.hostKey],
    port: data[names.endpointMap.portKey],
  });
  found.push(...ofTheKind(seen, observed));
  const { controlPlaneEndpoint } = bootstrapConfiguration(seen) ?? {};
  add("kubeadmConfig", "controlPlaneEndpoint of kubeadm-config", hostAndPort(controlPlaneEndpoint));
  add("clusterInfo", "ConfigMap kube-public/cluster-info", serverIn(dataOf(seen.clusterInfo)["kubeconfig"]));
  add(
    "kubeProxyKubeconfig",
    `the kubeconfig of ${names.serviceProxy.daemonSet}`,
    serverIn(mapData(seen, names.serviceProxy.configMap)["kubeconfig.conf"]),
  );
  add("ownKubeconfig", "your kubeconfig", server);
  for (const { address, port } of ground.servers)
    add("endpointSlice", "the EndpointSlice of default/kubernetes", { host: address, port: String(port) });
  return found;
}

/** Rule 3 of the endpoint map: what each kind of cluster calls its API server. */
function ofTheKind(seen: ClusterObjects, observed: Pick<Observation, "kind">): Found[] {
  const rule: EndpointRule = ENDPOINT_RULES[kindOf(observed)];
  const { writtenIn } = rule;
  if (writtenIn === undefined) return [];
  const [from, place] = PLACES_OF_KINDS[writtenIn](seen, rule);
  return place?.host && place.port ? [{ host: place.host, port: place.port, source: writtenIn, from }] : [];
}

type PlaceOfKind = (
  seen: ClusterObjects,
  rule: EndpointRule,
) => [from: string, place: { host?: string | undefined; port?: string | undefined } | undefined];

const PLACES_OF_KINDS: Record<NonNullable<EndpointRule["writtenIn"]>, PlaceOfKind> = {
  kindRule: (_, { host, port }) => ["the rule for this kind of cluster", { host: host?.say, port }],
  infrastructure: ({ infrastructure }) => {
    const status = (infrastructure?.["status"] ?? {}) as { apiServerInternalURI?: string };
    return ["apiServerInternalURI of Infrastructure cluster", hostAndPort(status.apiServerInternalURI)];
  },
  clusterToolConfiguration: (seen) => {
    const text = mapData(seen, "cluster-configuration")["cluster.yaml"];
    const configuration = readYaml<{ spec?: { apiServer?: string } }>(text);
    return ["the cluster tool's configuration", hostAndPort(configuration?.spec?.apiServer)];
  },
};

/** Findings by the map's rules, and what is only known of an address that is not configured anywhere. */
function against(
  { host, port }: Pick<Found, "host" | "port">,
  facts: ClusterFacts,
  ground: Basis,
  names: Names,
): string[] {
  const { name, hostKey, portKey } = names.endpointMap;
  const map: KubeObject = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: names.namespaces.operator },
    data: { [hostKey]: host, [portKey]: port },
  };
  const problems = endpointMapProblems(map, facts, names).map(({ message }) => message);
  const isServer = ground.servers.some(({ address }) => address === host);
  if (!isServer) return problems;
  const several = ground.servers.length > 1;
  if (several)
    problems.push(`${host} is one of ${ground.servers.length} API servers, not the load balancer in front of them.`);
  const node = facts.nodes?.find(({ addresses }) => addresses.includes(host));
  if (!several && node?.addressAssignment !== "static") {
    problems.push(`${host} is the API server's own address, which may be dynamic.`);
  }
  return [...new Set(problems)];
}

function apiServers(slices: readonly KubeObject[]): { address: string; port: number }[] {
  return slices.flatMap((slice) => {
    const { endpoints = [], ports = [] } = slice as {
      endpoints?: { addresses?: string[] }[];
      ports?: { port?: number }[];
    };
    const port = ports[0]?.port ?? 6443;
    return endpoints.flatMap(({ addresses = [] }) => addresses.map((address) => ({ address, port })));
  });
}

interface BootstrapConfiguration {
  controlPlaneEndpoint?: string;
  networking?: { podSubnet?: string; serviceSubnet?: string; dnsDomain?: string };
}

function bootstrapConfiguration(seen: ClusterObjects): BootstrapConfiguration | undefined {
  return readYaml(mapData(seen, "kubeadm-config")["ClusterConfiguration"]);
}

function dataOf(map: KubeObject | undefined): Record<string, string> {
  return (map?.["data"] ?? {}) as Record<string, string>;
}

function mapData(seen: ClusterObjects, name: string): Record<string, string> {
  return dataOf(seen.configMaps.find(({ metadata }) => metadata.name === name));
}

function serverIn(kubeconfig: string | undefined): { host: string; port: string } | undefined {
  const read = readYaml<{ clusters?: { cluster?: { server?: string } }[] }>(kubeconfig);
  return hostAndPort(read?.clusters?.[0]?.cluster?.server);
}

/** Of a URL, or of HOST:PORT as people write it. */
export function hostAndPort(text: string | undefined): { host: string; port: string } | undefined {
  if (!text) return undefined;
  const url = text.includes("://") ? text : `https://${text}`;
  if (!URL.canParse(url)) return undefined;
  const { hostname, port, protocol } = new URL(url);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: port || (protocol === "http:" ? "80" : "443") };
}

function listed(text: string | undefined): string[] {
  return typeof text === "string" ? text.split(",").filter((part) => part !== "") : [];
}
