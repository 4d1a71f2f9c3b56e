import type { KubeObject } from "../../api/object.ts";
import type { Net, ServiceBackend, ServicePort } from "../model.ts";
import { isV4, toAddress, toNets } from "../nets.ts";
import { type ServiceEndpoint, selectEndpoints, type Vantage } from "./endpoint-selection.ts";
import { endpointsByPort, portKey } from "./service-endpoints.ts";

export interface Service extends KubeObject {
  spec?: {
    type?: string;
    clusterIP?: string;
    clusterIPs?: string[] | null;
    ports?: Port[] | null;
    externalIPs?: string[] | null;
    loadBalancerSourceRanges?: string[] | null;
    sessionAffinity?: string;
    sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number | null } | null } | null;
    internalTrafficPolicy?: string | null;
    externalTrafficPolicy?: string | null;
    healthCheckNodePort?: number | null;
  };
  status?: { loadBalancer?: { ingress?: { ip?: string; ipMode?: string | null }[] | null } | null };
}

interface Port {
  name?: string;
  port: number;
  protocol?: string;
  nodePort?: number | null;
}

type Spec = NonNullable<Service["spec"]>;

const PROTOCOLS: Readonly<Record<string, 6 | 17>> = { TCP: 6, UDP: 17 };
/** Three hours: what Kubernetes means where affinity is asked for without a time. */
const AFFINITY_SECONDS = 10_800;
/** Who has such a label is served by another proxy, or by none. */
const NOT_OURS = ["service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"];

/** Addresses a service asks for itself, in its spec or by way of a load balancer; each once. */
export function claimedAddresses(service: Service): string[] {
  if (clusterAddresses(service).length === 0) return [];
  return unique([...addressesIn(service.spec?.externalIPs), ...balancerAddresses(service)]);
}

/** Rows of one service, from the endpoint slices that name it, ordered by their names. It is not asked at `refused`. */
export function servicePorts(
  service: Service,
  slices: readonly KubeObject[],
  vantage: Vantage,
  refused: (address: string) => boolean = () => false,
): ServicePort[] {
  const ours = slices.filter(isOurs);
  return clusterAddresses(service).flatMap(({ family, text }) => {
    const endpoints = endpointsByPort(ours, family, vantage.node);
    return portsOfFamily(service, { family, clusterAddress: text, endpoints, vantage, refused });
  });
}

/** Those a service proxy would serve, and we do not. */
export function sctpPorts(service: Service): number[] {
  const ports = (service.spec?.ports ?? []).filter(({ protocol }) => protocol === "SCTP");
  return ports.length > 0 && clusterAddresses(service).length > 0 ? ports.map(({ port }) => port) : [];
}

function isOurs({ metadata }: KubeObject): boolean {
  return NOT_OURS.every((label) => metadata.labels?.[label] === undefined);
}

/** One of each family at most; none if another proxy serves it, if it is headless or has no cluster IP yet. */
function clusterAddresses(service: Service): { family: 4 | 6; text: string }[] {
  const { type, clusterIP, clusterIPs } = service.spec ?? {};
  if (!isOurs(service) || type === "ExternalName") return [];
  const texts = addressesIn(clusterIPs?.length ? clusterIPs : [clusterIP ?? ""]);
  return ([4, 6] as const).flatMap((family) =>
    ofFamily(texts, family)
      .slice(0, 1)
      .map((text) => ({ family, text })),
  );
}

interface InFamily {
  family: 4 | 6;
  clusterAddress: string;
  endpoints: ReadonlyMap<string, ServiceEndpoint[]>;
  vantage: Vantage;
  refused: (address: string) => boolean;
}

function portsOfFamily(service: Service, inFamily: InFamily): ServicePort[] {
  const { family, clusterAddress, endpoints, vantage, refused } = inFamily;
  const { metadata, spec = {} } = service;
  const served = (addresses: readonly string[]) =>
    unique(ofFamily(addresses, family)).filter((address) => !refused(address));
  const externalAddresses = served(addressesIn(spec.externalIPs));
  const loadBalancerAddresses = served(balancerAddresses(service));
  const health = healthCheck(spec, endpoints);
  const wantsLocal = spec.externalTrafficPolicy === "Local";
  const internalLocal = spec.internalTrafficPolicy === "Local";
  return (spec.ports ?? []).flatMap(({ name = "", port, protocol = "TCP", nodePort }) => {
    const number = PROTOCOLS[protocol];
    if (number === undefined) return [];
    const external = Boolean(nodePort) || externalAddresses.length > 0 || loadBalancerAddresses.length > 0;
    const policies = { internalLocal, externalLocal: wantsLocal && external, external };
    const ofPort = endpoints.get(portKey(name, protocol)) ?? [];
    const selection = selectEndpoints(ofPort, policies, vantage);
    const readyHere = (internalLocal || policies.externalLocal) && ofPort.some(({ local, ready }) => local && ready);
    return {
      id: `${metadata.namespace ?? "default"}/${metadata.name}:${name}/${protocol.toLowerCase()}/${family}`,
      protocol: number,
      family,
      clusterAddress: refused(clusterAddress) ? null : clusterAddress,
      port,
      externalAddresses,
      loadBalancerAddresses,
      sourceRanges: sourceRanges(spec, family),
      nodePort: nodePort || null,
      ...health,
      affinitySeconds: affinity(spec),
      internalLocal,
      externalLocal: policies.externalLocal,
      clusterBackends: selection.cluster.map(backend),
      localBackends: selection.local.map(backend),
      ...(readyHere ? { readyHere: true as const } : {}),
      anyBackends: selection.any,
    };
  });
}

/** Those a load balancer delivers packets to unchanged. */
function balancerAddresses({ status }: Service): string[] {
  const delivered = (status?.loadBalancer?.ingress ?? []).filter(({ ipMode }) => (ipMode ?? "VIP") === "VIP");
  return addressesIn(delivered.map(({ ip }) => ip ?? ""));
}

/** Balancers ask only where packets must not leave this node. */
function healthCheck(
  { type, externalTrafficPolicy, healthCheckNodePort, ports }: Spec,
  endpoints: ReadonlyMap<string, ServiceEndpoint[]>,
): Pick<ServicePort, "healthCheckNodePort" | "healthCheckBackends"> {
  if (type !== "LoadBalancer" || externalTrafficPolicy !== "Local" || !healthCheckNodePort)
    return { healthCheckNodePort: null, healthCheckBackends: 0 };
  const all = (ports ?? []).flatMap(({ name = "", protocol = "TCP" }) => endpoints.get(portKey(name, protocol)) ?? []);
  const ready = all.filter((endpoint) => endpoint.local && endpoint.ready);
  return { healthCheckNodePort, healthCheckBackends: new Set(ready.map(({ address }) => address)).size };
}

/** Users write blanks around them. Unreadable ones deny all clients, and ranges of one family deny those of the other. */
function sourceRanges({ loadBalancerSourceRanges }: Spec, family: 4 | 6): Net[] | null {
  if (!loadBalancerSourceRanges?.length) return null;
  return toNets(loadBalancerSourceRanges.map((range) => range.trim())).filter((net) => isV4(net) === (family === 4));
}

function affinity({ sessionAffinity, sessionAffinityConfig }: Spec): number {
  if (sessionAffinity !== "ClientIP") return 0;
  return sessionAffinityConfig?.clientIP?.timeoutSeconds ?? AFFINITY_SECONDS;
}

function backend({ address, port, local, node }: ServiceEndpoint): ServiceBackend {
  return { address, port, local, node };
}

/** What is no address is left out. */
function addressesIn(texts: readonly string[] | null | undefined): string[] {
  return (texts ?? []).flatMap((text) => toAddress(text) ?? []);
}

function ofFamily(addresses: readonly string[], family: 4 | 6): string[] {
  return addresses.filter((address) => isV4(address) === (family === 4));
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)].sort();
}
