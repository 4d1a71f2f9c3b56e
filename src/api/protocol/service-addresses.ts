/** Of a Service, written by people: which addresses of pools it is to get. Each is a list in JSON, `["203.0.113.7"]`. */
export const SERVICE_REQUESTS = {
  /** Names or prefixes of pools to take from. */
  poolsV4: "vendor.io/ipv4pools",
  poolsV6: "vendor.io/ipv6pools",
  /** These very addresses, at most one of each family. */
  addresses: "vendor.io/loadBalancerIPs",
} as const;

/** The `loadBalancerClass` of Services that get their addresses from IP pools, whatever else gives addresses to Services in the cluster. */
export const LOAD_BALANCER_CLASS = "vendor";
