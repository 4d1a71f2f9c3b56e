import { parseCidr } from "../../kit/ip.ts";
import type {
  DataplaneModel,
  Direction,
  EndpointPolicy,
  HostEndpoint,
  TierPolicies,
  WorkloadEndpoint,
} from "../model.ts";

/**
 * All policy one interface runs in one direction: what an eBPF program is assembled from, what a chain of the nftables data plane dispatches to,
 * and what `hookVerdict` reads. `direction` of each part says which rules of its policies are meant.
 *
 * In order: preDNAT tiers against the destination before translation (allow skips the rest of the host's part, deny ends, no decision goes
 * on); then for packets from or to the node itself `normal` and the host's profiles (no decision: deny), for all others `forward` (no
 * decision goes on); then, of a workload, its tiers and profiles (no decision: deny); of a host interface: allow.
 */
export interface HookPolicy {
  host: HostPart | null;
  workload: WorkloadPart | null;
}

export interface HostPart {
  id: string;
  direction: Direction;
  preDNAT: TierPolicies[];
  forward: TierPolicies[];
  /** Null: suppressed, packets from and to the node go on. */
  normal: TierPolicies[] | null;
  profiles: string[];
}

export interface WorkloadPart extends EndpointPolicy {
  id: string;
  direction: Direction;
}

/**
 * What a workload's interface runs. The `*` host endpoint has a say there too, seen from the node: what leaves the pod arrives at the node.
 * The node's own packets to its pods are exempt (the kubelet must reach them), and, by default, pods' packets to their node.
 */
export function workloadHook(model: DataplaneModel, endpoint: WorkloadEndpoint, direction: Direction): HookPolicy {
  const wildcard = wildcardEndpoint(model);
  const inverse = direction === "ingress" ? "egress" : "ingress";
  const suppressed = direction === "ingress" || model.settings.endpointToHost !== "return";
  const host = wildcard && hostPart(wildcard, inverse);
  return {
    host: host ? { ...host, normal: suppressed ? null : host.normal } : null,
    workload: { id: endpoint.id, direction, ...endpoint[direction] },
  };
}

/** What one of the node's own interfaces runs; nothing where it has no host endpoint. */
export function hostHook(endpoint: HostEndpoint | undefined, direction: Direction): HookPolicy {
  return { host: endpoint ? hostPart(endpoint, direction) : null, workload: null };
}

function hostPart(endpoint: HostEndpoint, direction: Direction): HostPart {
  return {
    id: endpoint.id,
    direction,
    preDNAT: direction === "ingress" ? endpoint.preDNAT : [],
    forward: endpoint.forward[direction],
    normal: endpoint.normal[direction],
    profiles: endpoint.profiles,
  };
}

/** Whose an interface is: the endpoint that names it, else one that expects an address it has, else the one for all. First by id where several would do. */
export function hostEndpointOf(
  model: DataplaneModel,
  link: { name: string; addresses: readonly string[] },
): HostEndpoint | undefined {
  const all = [...model.hostEndpoints.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  const expects = (endpoint: HostEndpoint) =>
    endpoint.interfaceName === null && endpoint.expectedIPs.some((net) => hasAddress(net, link.addresses));
  return (
    all.find((endpoint) => endpoint.interfaceName === link.name) ??
    all.find(expects) ??
    all.find((endpoint) => endpoint.interfaceName === "*")
  );
}

function wildcardEndpoint(model: DataplaneModel): HostEndpoint | undefined {
  const all = [...model.hostEndpoints.values()].filter(({ interfaceName }) => interfaceName === "*");
  return all.sort((a, b) => (a.id < b.id ? -1 : 1))[0];
}

function hasAddress(net: string, addresses: readonly string[]): boolean {
  const wanted = parseCidr(net);
  return addresses.some((text) => {
    const cidr = parseCidr(
      text.includes("/") ? `${text.slice(0, text.indexOf("/"))}/${wanted?.length}` : `${text}/${wanted?.length}`,
    );
    return cidr !== undefined && cidr.family === wanted?.family && cidr.base === wanted.base;
  });
}
