import type { ServiceBackend } from "../model.ts";

/** A backend of one port, with what decides whether it is asked. */
export interface ServiceEndpoint extends ServiceBackend {
  ready: boolean;
  serving: boolean;
  terminating: boolean;
  /** Zones and nodes it is meant for; empty is no hint. */
  zoneHints: readonly string[];
  nodeHints: readonly string[];
}

/** Where the asking happens. */
export interface Vantage {
  node: string;
  /** Empty where the node has none. */
  zone: string;
}

interface Policies {
  internalLocal: boolean;
  externalLocal: boolean;
  /** It has a node port, an external address or a load balancer's. */
  external: boolean;
}

interface Selection<T> {
  cluster: T[];
  local: T[];
  any: boolean;
}

/**
 * Kubernetes' choice, as kube-proxy makes it: those that are ready, narrowed by hints; if none is ready, those that terminate but
 * still serve. A list no rule of the service uses stays empty.
 */
export function selectEndpoints<T extends ServiceEndpoint>(
  endpoints: readonly T[],
  { internalLocal, externalLocal, external }: Policies,
  vantage: Vantage,
): Selection<T> {
  const usesCluster = !internalLocal || external;
  const usesLocal = internalLocal || (externalLocal && external);
  const cluster = usesCluster ? answering(endpoints, hintsOf(endpoints, vantage)) : [];
  const local = usesLocal ? answering(endpoints.filter((endpoint) => endpoint.local)) : [];
  // With a local traffic policy, backends elsewhere decide between a refusal and a drop.
  const any = cluster.length > 0 || (usesLocal && answering(endpoints).length > 0);
  return { cluster, local, any };
}

function answering<T extends ServiceEndpoint>(endpoints: readonly T[], isMeant: (endpoint: T) => boolean = () => true) {
  const ready = endpoints.filter((endpoint) => endpoint.ready && isMeant(endpoint));
  return ready.length > 0 ? ready : endpoints.filter(({ serving, terminating }) => serving && terminating);
}

/**
 * Hints count only when every ready endpoint has one and one of them is for us: half-written hints must not send all clients to the same few.
 * The node's come before the zone's.
 */
function hintsOf(
  endpoints: readonly ServiceEndpoint[],
  { node, zone }: Vantage,
): (endpoint: ServiceEndpoint) => boolean {
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  const forNode = ({ nodeHints }: ServiceEndpoint) => nodeHints.includes(node);
  const forZone = ({ zoneHints }: ServiceEndpoint) => zoneHints.includes(zone);
  if (ready.every(({ nodeHints }) => nodeHints.length > 0) && ready.some(forNode)) return forNode;
  if (zone !== "" && ready.every(({ zoneHints }) => zoneHints.length > 0) && ready.some(forZone)) return forZone;
  return () => true;
}
