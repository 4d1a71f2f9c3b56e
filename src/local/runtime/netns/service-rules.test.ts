import { expect, it } from "vitest";
import type { EndpointSlice, Service } from "../../controllers/workload-types.ts";
import { serviceRules } from "./service-rules.ts";

function service(name: string, spec: Service["spec"]): Service {
  return { apiVersion: "v1", kind: "Service", metadata: { name, namespace: "default" }, spec };
}

function slice(name: string, port: number, ...addresses: string[]): EndpointSlice {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `${name}-1`, namespace: "default", labels: { "kubernetes.io/service-name": name } },
    addressType: addresses[0]?.includes(":") ? "IPv6" : "IPv4",
    ports: [{ name: "", port, protocol: "TCP" }],
    endpoints: addresses.map((address) => ({
      addresses: [address],
      conditions: { ready: true, serving: true, terminating: false },
    })),
  };
}

const rulesFor = (services: Service[], slices: EndpointSlice[]) =>
  serviceRules(services, slices)
    .split("\n")
    .filter((line) => / dport /.test(line));

it("a service with one endpoint is translated to it", () => {
  const api = service("kubernetes", { clusterIP: "10.96.0.1", ports: [{ port: 443 }] });
  expect(rulesFor([api], [slice("kubernetes", 6443, "172.18.0.1")])).toEqual([
    "ip daddr 10.96.0.1 tcp dport 443 dnat ip to 172.18.0.1:6443",
  ]);
});

it("several endpoints share it, and a node port leads to them from outside, looking like the node", () => {
  const web = service("web", { clusterIPs: ["10.96.0.9", "fd00::9"], ports: [{ port: 80, nodePort: 30080 }] });
  const slices = [slice("web", 8080, "10.244.0.1", "10.244.1.1"), slice("web", 8080, "fd00:1::1")];
  expect(rulesFor([web], slices)).toEqual([
    "ip daddr 10.96.0.9 tcp dport 80 dnat ip addr . port to numgen random mod 2 map { 0 : 10.244.0.1 . 8080, 1 : 10.244.1.1 . 8080 }",
    "meta nfproto ipv4 fib daddr type local tcp dport 30080 meta mark set meta mark | 0x4000 dnat ip addr . port to numgen random mod 2 map { 0 : 10.244.0.1 . 8080, 1 : 10.244.1.1 . 8080 }",
    "ip6 daddr fd00::9 tcp dport 80 dnat ip6 to [fd00:1::1]:8080",
    "meta nfproto ipv6 fib daddr type local tcp dport 30080 meta mark set meta mark | 0x4000 dnat ip6 to [fd00:1::1]:8080",
  ]);
});

it("a service nobody answers, one without an address and one of SCTP have no rules", () => {
  const none = service("none", { clusterIP: "10.96.0.2", ports: [{ port: 80 }] });
  const headless = service("headless", { clusterIP: "None", ports: [{ port: 80 }] });
  const sctp = service("sctp", { clusterIP: "10.96.0.3", ports: [{ port: 80, protocol: "SCTP" }] });
  expect(rulesFor([none, headless, sctp], [slice("headless", 80, "10.0.0.1"), slice("sctp", 80, "10.0.0.1")])).toEqual(
    [],
  );
});
