import { vendorNames } from "../api/names.ts";
import { groupVersion, type KubeObject, type ResourceKind } from "../api/object.ts";
import { dataplaneConfiguration } from "../api/resources/dataplane-configuration.ts";
import { hostEndpoint } from "../api/resources/host-endpoint.ts";
import { ipPool } from "../api/resources/ip-pool.ts";
import { ipReservation } from "../api/resources/ip-reservation.ts";
import { blockAffinity, ipamBlock, ipamHandle } from "../api/resources/ipam.ts";
import { kubeControllersConfiguration } from "../api/resources/kube-controllers-configuration.ts";
import { profile } from "../api/resources/profile.ts";
import { placesOf, type Resource } from "../api/resources/resource.ts";

/** Our kinds where they are stored: there they can be read and written while the aggregated API is down. */
const stored = (resource: Resource): ResourceKind => placesOf(resource, vendorNames).stored;

export const HOST_ENDPOINTS = stored(hostEndpoint);
export const PROFILES = stored(profile);
export const CONFIGURATIONS = stored(kubeControllersConfiguration);
export const DATAPLANE_CONFIGURATIONS = stored(dataplaneConfiguration);
export const IP_POOLS = stored(ipPool);
export const IP_RESERVATIONS = stored(ipReservation);
export const IPAM_BLOCKS = stored(ipamBlock);
export const BLOCK_AFFINITIES = stored(blockAffinity);
export const IPAM_HANDLES = stored(ipamHandle);

/** The head of a new object. */
export function typeOf(kind: ResourceKind): { apiVersion: string; kind: string } {
  return { apiVersion: groupVersion(kind), kind: kind.kind };
}

/** Whether an object says that we made it. Names say nothing: people choose them too. */
export function isOurs({ metadata }: KubeObject): boolean {
  const { key, value } = vendorNames.labels.createdBy;
  return metadata.labels?.[key] === value;
}
