import type { KubeObject } from "../../src/api/object.ts";
import type { Random } from "./random.ts";
import { NAMESPACES, SERVICES } from "./random-names.ts";

const ZONES = ["a", "b"];
const NODES = ["node-a", "node-b"];
const PORTS = ["http", "dns"];

/** Free ones, one that pods have, and one of a node: what becomes of them must not depend on who came first. */
const CLAIMED = ["192.0.2.1", "2001:db8::1", "10.0.0.1", "10.9.0.1", "172.16.0.2"];

/** Services with everything they can ask for, and slices that rarely agree with each other. */
export function serviceObjects(random: Random): KubeObject[] {
  return [
    ...NAMESPACES.flatMap((namespace) => SERVICES.map((name) => ({ name, namespace })))
      .filter(() => random.chance(60))
      .map((metadata, index) => service(random, metadata, index)),
    ...random.some(0, 8, (index) => slice(random, index)),
    {
      apiVersion: "v1",
      kind: "Node",
      metadata: {
        name: "node-a",
        labels: { ...random.maybe(70, "topology.kubernetes.io/zone", () => random.of(ZONES)) } as Record<
          string,
          string
        >,
      },
      status: { addresses: [{ type: "InternalIP", address: "172.16.0.1" }] },
    },
  ];
}

function service(random: Random, metadata: { name: string; namespace: string }, index: number): KubeObject {
  const clusterIPs = random.of([[`10.96.0.${index}`], [`10.96.0.${index}`, `fd96::${index}`], ["None"]]);
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { ...metadata, labels: random.chance(5) ? { "service.kubernetes.io/service-proxy-name": "other" } : {} },
    spec: {
      type: random.of(["ClusterIP", "NodePort", "LoadBalancer"]),
      clusterIP: clusterIPs[0],
      clusterIPs,
      ports: PORTS.filter(() => random.chance(80)).map((name, at) => ({
        name,
        port: 80 + at,
        protocol: random.of(["TCP", "TCP", "UDP", "SCTP"]),
        ...random.maybe(50, "nodePort", () => 30_000 + index * 2 + at),
      })),
      ...random.maybe(30, "externalIPs", () => random.some(0, 2, () => random.of(CLAIMED))),
      ...random.maybe(30, "internalTrafficPolicy", () => random.of(["Local", "Cluster"])),
      ...random.maybe(40, "externalTrafficPolicy", () => random.of(["Local", "Cluster"])),
      ...random.maybe(40, "healthCheckNodePort", () => 32_000 + index),
      ...random.maybe(30, "sessionAffinity", () => random.of(["ClientIP", "None"])),
      ...random.maybe(30, "loadBalancerSourceRanges", () =>
        random.some(0, 2, () => random.of(["10.0.0.0/8", "fd00::/8"])),
      ),
    },
    status: { loadBalancer: { ingress: random.some(0, 2, () => ({ ip: random.of(["192.0.2.7", "2001:db8::7"]) })) } },
  };
}

function slice(random: Random, index: number): KubeObject {
  const v6 = random.chance(30);
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: `service-slice${index}`,
      namespace: random.of(NAMESPACES),
      labels: { "kubernetes.io/service-name": random.of(SERVICES) },
    },
    addressType: v6 ? "IPv6" : "IPv4",
    endpoints: random.some(0, 4, () => ({
      addresses: [`${v6 ? "fd00::" : "10.0.0."}${1 + random.below(5)}`],
      ...random.maybe(80, "nodeName", () => random.of(NODES)),
      conditions: {
        ...random.maybe(80, "ready", () => random.chance(60)),
        ...random.maybe(60, "serving", () => random.chance(70)),
        ...random.maybe(60, "terminating", () => random.chance(50)),
      },
      hints: {
        ...random.maybe(60, "forZones", () => [{ name: random.of(ZONES) }]),
        ...random.maybe(40, "forNodes", () => [{ name: random.of(NODES) }]),
      },
    })),
    ports: PORTS.filter(() => random.chance(80)).map((name) => ({
      name,
      port: random.of([8080, 5353]),
      protocol: random.of(["TCP", "TCP", "UDP"]),
    })),
  };
}
