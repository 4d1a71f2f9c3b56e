import { vendorNames } from "../api/names.ts";
import { groupVersion, type KubeObject, type ResourceKind } from "../api/object.ts";
import { type BGPConfiguration, bgpConfiguration } from "../api/resources/bgp-configuration.ts";
import { type BGPFilter, bgpFilter } from "../api/resources/bgp-filter.ts";
import { type BGPPeer, bgpPeer } from "../api/resources/bgp-peer.ts";
import { clusterInformation } from "../api/resources/cluster-information.ts";
import { ipPool } from "../api/resources/ip-pool.ts";
import { ipReservation } from "../api/resources/ip-reservation.ts";
import { ipamConfiguration } from "../api/resources/ipam.ts";
import { type NodeStatus as NodeStatusResource, nodeStatus } from "../api/resources/node-status.ts";
import { placesOf, type Resource } from "../api/resources/resource.ts";

/** Our kinds where they are stored: there they can be read and written while the aggregated API is down. */
const stored = (resource: Resource): ResourceKind => placesOf(resource, vendorNames).stored;

export const IP_POOLS = stored(ipPool);
export const IPAM_CONFIGURATIONS = stored(ipamConfiguration);
export const IP_RESERVATIONS = stored(ipReservation);
export const BGP_CONFIGURATIONS = stored(bgpConfiguration);
export const BGP_PEERS = stored(bgpPeer);
export const BGP_FILTERS = stored(bgpFilter);
export const NODE_STATUSES = stored(nodeStatus);
export const CLUSTER_INFORMATION = stored(clusterInformation);

export type BgpConfiguration = KubeObject & BGPConfiguration;
export type BgpPeer = KubeObject & BGPPeer;
export type BgpFilter = KubeObject & BGPFilter;
export type NodeStatus = KubeObject & NodeStatusResource;

/** The head of a new object. */
export function typeOf(kind: ResourceKind): { apiVersion: string; kind: string } {
  return { apiVersion: groupVersion(kind), kind: kind.kind };
}
