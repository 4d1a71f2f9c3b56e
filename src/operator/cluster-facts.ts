import { vendorNames } from "../api/names.ts";
import { readYaml, serviceProxySettings } from "../api/protocol/kube-proxy-mode.ts";
import { parkedBy } from "../api/protocol/kube-proxy-view.ts";
import type { ClusterKind } from "../api/tables/cluster-kinds.ts";
import { detectClusterKind } from "../api/tables/detect-cluster-kind.ts";
import { ENDPOINT_RULES, type EndpointRule } from "../api/tables/endpoint-rules.ts";
import { type ClusterFacts, observeNode } from "../api/validation/facts.ts";
import type { Workload } from "../api/workload-objects.ts";
import { configMapData, type Observed, serviceProxyOf } from "./observed.ts";

/** What the rules of `src/api/validation` may know of this cluster. */
export function clusterFacts(observed: Observed): ClusterFacts {
  const kind = clusterKindOf(observed);
  return {
    ...(kind ? { kind } : {}),
    datastore: datastoreOf(observed),
    nodes: observed.nodes.map((node) => observeNode(node, vendorNames)),
    apiClusterIPs: apiClusterIPs(observed),
    podCidrs: podCidrs(observed),
    version: observed.self.version,
    serviceProxyMode: serviceProxyMode(observed),
  };
}

/** The kind of cluster this is, as far as it shows. */
export function clusterKindOf({ platform, nodes }: Observed): ClusterKind | undefined {
  return detectClusterKind({ ...platform, nodes })?.kind;
}

/** An installation by manifests that is still there may keep its objects in etcd. */
function datastoreOf(observed: Observed): "api" | "etcd" {
  const { configMap, etcdEndpointsKey } = vendorNames.manifests;
  if (configMapData(observed, configMap, etcdEndpointsKey)) return "etcd";
  const agents = observed.platform.daemonSets.filter(({ metadata }) => metadata.name.startsWith("vendor-"));
  return agents.some(usesEtcd) ? "etcd" : "api";
}

function usesEtcd(daemonSet: Workload): boolean {
  const env = (daemonSet.spec?.template?.spec?.containers ?? []).flatMap((container) => container.env ?? []);
  return env.some(({ name, value }) => name === "DATASTORE_TYPE" && value?.startsWith("etcd"));
}

function apiClusterIPs({ platform }: Observed): string[] {
  const spec = platform.apiService?.["spec"] as { clusterIPs?: string[]; clusterIP?: string } | undefined;
  return spec?.clusterIPs ?? (spec?.clusterIP ? [spec.clusterIP] : []);
}

/** The pod prefixes the cluster was made with, where its maker wrote them down. */
export function podCidrs(observed: Observed): string[] {
  const network = observed.platform.openshift.network?.["spec"] as { clusterNetwork?: { cidr: string }[] } | undefined;
  if (network?.clusterNetwork) return network.clusterNetwork.map(({ cidr }) => cidr);
  const subnet = bootstrapConfiguration(observed)?.networking?.podSubnet;
  return typeof subnet === "string" ? subnet.split(",").filter((cidr) => cidr !== "") : [];
}

interface BootstrapConfiguration {
  controlPlaneEndpoint?: string;
  networking?: { podSubnet?: string };
}

function bootstrapConfiguration(observed: Observed): BootstrapConfiguration | undefined {
  return readYaml(configMapData(observed, "kubeadm-config", "ClusterConfiguration"));
}

/**
 * The API server's stable address if the platform itself reports it: clusters on which eBPF is the default need no map.
 * An address of one of several servers is not reported in these places.
 */
export function platformEndpoint(observed: Observed, kind: ClusterKind): { host: string; port: string } | undefined {
  const { operatorReads }: EndpointRule = ENDPOINT_RULES[kind];
  if (operatorReads === "infrastructure") {
    const { infrastructure } = observed.platform.openshift;
    return hostAndPort(
      (infrastructure?.["status"] as { apiServerInternalURI?: string } | undefined)?.apiServerInternalURI,
    );
  }
  const told = operatorReads === "kubeadmConfig" ? bootstrapConfiguration(observed)?.controlPlaneEndpoint : undefined;
  return told ? hostAndPort(`https://${told}`) : undefined;
}

function hostAndPort(uri: string | undefined): { host: string; port: string } | undefined {
  if (!uri || !URL.canParse(uri)) return undefined;
  const { hostname, port } = new URL(uri);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: port || (uri.startsWith("https") ? "443" : "80") };
}

/** How the service proxy works; `none` where there is none, or where it is parked. */
export function serviceProxyMode(observed: Observed): NonNullable<ClusterFacts["serviceProxyMode"]> {
  const proxy = serviceProxyOf(observed);
  if (!proxy || parkedBy(proxy)) return "none";
  const { mode } = serviceProxySettings(proxy, observed.platform.configMaps);
  return mode === "userspace" ? "iptables" : mode;
}
