/** Where a pod may find the API server, and what it takes to get there from each kind of address. */
export interface ApiAddresses {
  /** The address of the `kubernetes` service: a data plane on the node must translate it. */
  clusterIPs: readonly string[];
  /** Its names, which the cluster's own name server knows. */
  serviceNames: readonly string[];
  /** The address the platform publishes: a load balancer, or a proxy on each node. */
  platform: { host: string; port: number; found: PlatformLookup };
  /** Where it really listens, and the names that lead there. */
  server: { hosts: readonly string[]; port: number };
}

/** Which pods can resolve the platform's address: all, pods that use the cloud's name server, pods in their node's network. */
export type PlatformLookup = { by: "anybody" } | { by: "nameserver"; address: string } | { by: "nodeNetwork" };

/** What of a pod decides where it gets. */
export interface Caller {
  hostNetwork: boolean;
  /** Of its `dnsConfig`. */
  nameservers: readonly string[];
  /** Asks the cluster's own name server, which is behind a cluster IP and asks the cloud's. */
  clusterDns: boolean;
  /** Something on its node serves cluster IPs: a service proxy, or our agent with eBPF. */
  servicesWork: boolean;
}

export type RouteFailure = "ENOTFOUND" | "ECONNREFUSED" | "EHOSTUNREACH";

const HTTPS = 443;

/** Undefined when a connection to this address reaches the API server; else what connecting fails with. */
export function apiRouteFailure(
  { host, port }: { host: string; port: number },
  addresses: ApiAddresses,
  caller: Caller,
): RouteFailure | undefined {
  const { clusterIPs, serviceNames, platform, server } = addresses;
  if (clusterIPs.includes(host) || serviceNames.includes(host)) {
    // The cluster's name server is behind a cluster IP itself.
    if (!caller.servicesWork) return isName(host) ? "ENOTFOUND" : "EHOSTUNREACH";
    return port === HTTPS ? undefined : "ECONNREFUSED";
  }
  if (host === platform.host) {
    if (!findsPlatform(platform.found, caller)) return "ENOTFOUND";
    return port === platform.port || port === server.port ? undefined : "ECONNREFUSED";
  }
  if (server.hosts.includes(host)) return port === server.port ? undefined : "ECONNREFUSED";
  return isName(host) ? "ENOTFOUND" : "ECONNREFUSED";
}

function findsPlatform(found: PlatformLookup, caller: Caller): boolean {
  const { nameservers, hostNetwork, clusterDns, servicesWork } = caller;
  switch (found.by) {
    case "anybody":
      return true;
    case "nameserver":
      return nameservers.includes(found.address) || (clusterDns && servicesWork);
    case "nodeNetwork":
      return hostNetwork;
  }
}

function isName(host: string): boolean {
  return !/^[\d.]+$/.test(host) && !host.includes(":");
}
