import { CLUSTER_KINDS } from "../../api/tables/cluster-kinds.ts";
import { platformOf } from "../../operator/render/platform.ts";
import type { PlatformProfile, PlatformProfileOptions } from "../platform-profile.ts";
import { addressIn } from "../platform-profiles/server-names.ts";
import type { ApiAddresses, PlatformLookup } from "./api-route.ts";

const SERVICE_NAME = /^kubernetes(\.default(\.svc(\.cluster\.local)?)?)?$/;

/** The addresses under which the API server of a cluster of this kind is found. */
export function platformAddresses(personality: PlatformProfile, options: PlatformProfileOptions): ApiAddresses {
  const names = personality.serverNames(options);
  const clusterIPs = personality.serviceCidrs.slice(0, options.dualStack ? 2 : 1).map((cidr) => addressIn(cidr, 1));
  const endpoint = personality.endpoint(options);
  const serviceNames = names.filter((name) => SERVICE_NAME.test(name));
  const elsewhere = new Set([...clusterIPs, ...serviceNames, endpoint.host]);
  return {
    clusterIPs,
    serviceNames,
    platform: { ...endpoint, found: lookupOf(personality) },
    server: { hosts: names.filter((name) => !elsewhere.has(name)), port: options.apiAddress.port },
  };
}

function lookupOf({ kind }: PlatformProfile): PlatformLookup {
  const row = CLUSTER_KINDS[kind];
  if (row.operatorNameserver !== undefined) return { by: "nameserver", address: row.operatorNameserver };
  return platformOf(kind).addressOnlyOnNodes === undefined ? { by: "anybody" } : { by: "nodeNetwork" };
}

/**
 * The OpenShift-like platform has no kube-proxy and publishes no address: its own balancer on each node is what serves the
 * API server's cluster IP until our data plane does.
 */
export function platformServesClusterIP({ kind }: PlatformProfile): boolean {
  return CLUSTER_KINDS[kind].platformServesServices;
}
