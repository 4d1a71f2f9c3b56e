import { describe, expect, it } from "vitest";
import { type ApiAddresses, apiRouteFailure, type Caller, type PlatformLookup } from "./api-route.ts";

const addresses = (found: PlatformLookup): ApiAddresses => ({
  clusterIPs: ["10.96.0.1"],
  serviceNames: ["kubernetes.default.svc"],
  platform: { host: "api.demo.internal", port: 443, found },
  server: { hosts: ["127.0.0.1", "localhost", "demo-control-plane"], port: 6443 },
});
const anybody = addresses({ by: "anybody" });
const cloud = addresses({ by: "nameserver", address: "169.254.169.253" });
const nodeProxy = addresses({ by: "nodeNetwork" });

const pod: Caller = { hostNetwork: false, nameservers: [], clusterDns: true, servicesWork: true };
const parked: Caller = { ...pod, servicesWork: false };
const withNameserver: Caller = { ...parked, nameservers: ["169.254.169.253"] };
const onNode: Caller = { ...parked, hostNetwork: true, clusterDns: false };

const ROWS: [
  what: string,
  where: ApiAddresses,
  host: string,
  port: number,
  caller: Caller,
  fails: string | undefined,
][] = [
  ["the cluster IP while services work", anybody, "10.96.0.1", 443, pod, undefined],
  ["the cluster IP with the proxy parked and no eBPF", anybody, "10.96.0.1", 443, parked, "EHOSTUNREACH"],
  ["the cluster IP on a port nobody serves", anybody, "10.96.0.1", 6443, pod, "ECONNREFUSED"],
  ["the service's name while services work", anybody, "kubernetes.default.svc", 443, pod, undefined],
  ["the service's name with no name server to reach", anybody, "kubernetes.default.svc", 443, parked, "ENOTFOUND"],
  ["the platform's address needs no services", anybody, "api.demo.internal", 443, parked, undefined],
  ["the platform's address on a wrong port", anybody, "api.demo.internal", 8443, parked, "ECONNREFUSED"],
  ["a cloud's load balancer with the node's name server", cloud, "api.demo.internal", 443, onNode, "ENOTFOUND"],
  ["a cloud's load balancer by the cluster's name server", cloud, "api.demo.internal", 443, pod, undefined],
  ["a cloud's load balancer, no name server to reach", cloud, "api.demo.internal", 443, parked, "ENOTFOUND"],
  ["a cloud's load balancer with its name server", cloud, "api.demo.internal", 443, withNameserver, undefined],
  ["a proxy on each node, from the node's network", nodeProxy, "api.demo.internal", 443, onNode, undefined],
  ["a proxy on each node, from a pod's own network", nodeProxy, "api.demo.internal", 443, parked, "ENOTFOUND"],
  ["where the server really listens", anybody, "127.0.0.1", 6443, parked, undefined],
  ["a control-plane node by name", anybody, "demo-control-plane", 6443, parked, undefined],
  ["the right host on a wrong port", anybody, "127.0.0.1", 443, parked, "ECONNREFUSED"],
  ["a name nobody has", anybody, "api.typo.internal", 443, pod, "ENOTFOUND"],
  ["an address nobody has", anybody, "192.0.2.1", 6443, pod, "ECONNREFUSED"],
  ["an IPv6 address nobody has", anybody, "fd00::1", 6443, pod, "ECONNREFUSED"],
];

describe("the way from a pod to the API server", () => {
  it.each(ROWS)("%s", (_what, where, host, port, caller, fails) => {
    expect(apiRouteFailure({ host, port }, where, caller)).toBe(fails);
  });
});
