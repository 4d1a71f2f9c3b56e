import { apiServer } from "./api-server.ts";
import { bgpConfiguration } from "./bgp-configuration.ts";
import { bgpFilter } from "./bgp-filter.ts";
import { bgpPeer } from "./bgp-peer.ts";
import { clusterInformation } from "./cluster-information.ts";
import { dataplaneConfiguration } from "./dataplane-configuration.ts";
import { flowLogs } from "./flow-logs.ts";
import { flowUI } from "./flow-ui.ts";
import { hostEndpoint } from "./host-endpoint.ts";
import { installation } from "./installation.ts";
import { ipPool } from "./ip-pool.ts";
import { ipReservation } from "./ip-reservation.ts";
import { blockAffinity, ipamBlock, ipamConfiguration, ipamHandle } from "./ipam.ts";
import { kubeControllersConfiguration } from "./kube-controllers-configuration.ts";
import { globalNetworkPolicy, networkPolicy } from "./network-policy.ts";
import { globalNetworkSet, networkSet } from "./network-set.ts";
import { nodeStatus } from "./node-status.ts";
import { profile } from "./profile.ts";
import type { Resource } from "./resource.ts";
import { stagedGlobalNetworkPolicy, stagedKubernetesNetworkPolicy, stagedNetworkPolicy } from "./staged-policy.ts";
import { tier } from "./tier.ts";
import { vendorStatus } from "./vendor-status.ts";

/** Every noun of ours, in the order people meet them; CRDs are printed in this order. */
export const RESOURCES: readonly Resource[] = [
  installation,
  apiServer,
  flowLogs,
  flowUI,
  vendorStatus,
  dataplaneConfiguration,
  kubeControllersConfiguration,
  clusterInformation,
  tier,
  networkPolicy,
  globalNetworkPolicy,
  stagedNetworkPolicy,
  stagedGlobalNetworkPolicy,
  stagedKubernetesNetworkPolicy,
  networkSet,
  globalNetworkSet,
  profile,
  hostEndpoint,
  ipPool,
  ipReservation,
  bgpConfiguration,
  bgpPeer,
  bgpFilter,
  nodeStatus,
  ipamConfiguration,
  ipamBlock,
  blockAffinity,
  ipamHandle,
];
