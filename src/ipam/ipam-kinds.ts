import { vendorNames } from "../api/names.ts";
import { groupVersion, type KubeObject, type ResourceKind } from "../api/object.ts";
import type { IPPool } from "../api/resources/ip-pool.ts";
import type { IPReservation } from "../api/resources/ip-reservation.ts";
import { blockAffinity, type IPAMBlock, ipamBlock, type ipamConfiguration, ipamHandle } from "../api/resources/ipam.ts";
import { type ObjectOf, placesOf, type Resource } from "../api/resources/resource.ts";

/** Where they are stored: there they can be read and written while the aggregated API is down. */
const stored = (resource: Resource): ResourceKind => placesOf(resource, vendorNames).stored;

export const IPAM_BLOCKS = stored(ipamBlock);
export const BLOCK_AFFINITIES = stored(blockAffinity);
export const IPAM_HANDLES = stored(ipamHandle);

export type Block = KubeObject & IPAMBlock;
export type Affinity = KubeObject & ObjectOf<typeof blockAffinity>;
export type Handle = KubeObject & ObjectOf<typeof ipamHandle>;
export type IpamConfiguration = KubeObject & ObjectOf<typeof ipamConfiguration>;
export type Reservation = KubeObject & IPReservation;
export type Pool = KubeObject & IPPool;

/** The head of a new object. */
export function typeOf(kind: ResourceKind): { apiVersion: string; kind: string } {
  return { apiVersion: groupVersion(kind), kind: kind.kind };
}
