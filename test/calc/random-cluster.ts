import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { Random } from "./random.ts";
import {
  ACCOUNTS,
  LABELS,
  NAMESPACES,
  NETS_V4,
  NETS_V6,
  NODE_ADDRESSES,
  PORT_NAMES,
  SERVICES,
} from "./random-names.ts";
import { randomKubernetesPolicy, randomPolicy, randomRules } from "./random-policy.ts";

/** A small cluster with everything policy can ask for, small enough that rules and packets often meet. */
export interface RandomCluster {
  seed: number;
  /** The node whose model is meant. */
  node: string;
  objects: KubeObject[];
  /** Its interface, besides those of pods. */
  uplink: { name: string; addresses: string[] };
}

const STORED = `${vendorNames.groups.stored.group}/${vendorNames.groups.stored.version}`;
const NODE = "node-a";

/** The same for the same seed, on every machine. */
export function randomCluster(seed: number): RandomCluster {
  const random = new Random(seed);
  const objects: KubeObject[] = [
    ...clusterObjects(random),
    ...pods(random),
    ...networkSets(random),
    ...slices(random),
    ...tiersAndProfiles(random),
    ...hostEndpoints(random),
    ...random.some(0, 2, (index) => randomKubernetesPolicy(random, index)),
    ...random.some(1, 5, (index) => stored(randomPolicy(random, index))),
    configuration(random),
  ];
  return { seed, node: NODE, objects, uplink: { name: "eth0", addresses: [...NODE_ADDRESSES[NODE]] } };
}

function stored({ kind, ...rest }: Omit<KubeObject, "apiVersion">): KubeObject {
  return { apiVersion: STORED, kind, ...rest } as KubeObject;
}

function randomLabels(random: Random): Record<string, string> {
  return {
    ...random.maybe(70, "app", () => random.of(LABELS.app)),
    ...random.maybe(60, "env", () => random.of(LABELS.env)),
  } as Record<string, string>;
}

function clusterObjects(random: Random): KubeObject[] {
  const core = { apiVersion: "v1" };
  const nodes = Object.entries(NODE_ADDRESSES).map(([name, addresses]) => ({
    ...core,
    kind: "Node",
    metadata: { name },
    status: { addresses: addresses.map((address) => ({ type: "InternalIP", address })) },
  }));
  const namespaces = NAMESPACES.filter(() => random.chance(95)).map((name) => ({
    ...core,
    kind: "Namespace",
    metadata: { name, labels: randomLabels(random) },
  }));
  const accounts = NAMESPACES.flatMap((namespace) =>
    ACCOUNTS.map((name) => ({
      ...core,
      kind: "ServiceAccount",
      metadata: { name, namespace, labels: randomLabels(random) },
    })),
  );
  return [...nodes, ...namespaces, ...accounts];
}

function pods(random: Random): KubeObject[] {
  return random.some(3, 8, (index) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `p${index}`, namespace: random.of(NAMESPACES), labels: randomLabels(random) },
    spec: {
      nodeName: index < 3 || random.chance(50) ? NODE : "node-b",
      ...random.maybe(60, "serviceAccountName", () => random.of(ACCOUNTS)),
      ...random.maybe(5, "hostNetwork", () => true),
      containers: [
        { name: "main", ports: PORT_NAMES.filter(() => random.chance(60)).map((name) => namedPort(random, name)) },
      ],
    },
    status: {
      phase: random.chance(95) ? "Running" : "Succeeded",
      podIPs: [{ ip: `10.0.0.${index + 1}` }, ...(random.chance(80) ? [{ ip: `fd00::${index + 1}` }] : [])],
    },
  }));
}

function namedPort(random: Random, name: string) {
  return {
    name,
    containerPort: random.of([80, 53, 8080]),
    ...random.maybe(50, "protocol", () => random.of(["TCP", "UDP"])),
  };
}

function networkSets(random: Random): KubeObject[] {
  return random.some(0, 3, (index) => {
    const namespaced = random.chance(50);
    return stored({
      kind: namespaced ? "NetworkSet" : "GlobalNetworkSet",
      metadata: {
        name: `set${index}`,
        ...(namespaced ? { namespace: random.of(NAMESPACES) } : {}),
        labels: randomLabels(random),
      },
      spec: { nets: random.some(0, 3, () => random.of([...NETS_V4, ...NETS_V6])) },
    });
  });
}

function slices(random: Random): KubeObject[] {
  return random.some(0, 3, (index) => ({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: `slice${index}`,
      namespace: random.of(NAMESPACES),
      labels: { "kubernetes.io/service-name": random.of(SERVICES) },
    },
    addressType: "IPv4",
    endpoints: random.some(0, 3, () => ({ addresses: [`10.0.0.${1 + random.below(8)}`] })),
    ports: random.some(0, 2, () => ({
      port: random.of([80, 53]),
      ...random.maybe(70, "protocol", () => random.of(["TCP", "UDP"])),
    })),
  }));
}

function tiersAndProfiles(random: Random): KubeObject[] {
  const tiers = ["front", "rear"]
    .filter(() => random.chance(70))
    .map((name) =>
      stored({
        kind: "Tier",
        metadata: { name },
        spec: {
          ...random.maybe(80, "order", () => random.of([100, 500, 1_000_000, 2_000_000])),
          ...random.maybe(80, "defaultAction", () => random.of(["Deny", "Pass"])),
        },
      }),
    );
  const profiles = random.some(0, 2, (index) =>
    stored({
      kind: "Profile",
      metadata: { name: `profile${index}` },
      spec: {
        ...random.maybe(70, "ingress", () => randomRules(random, undefined, "ingress")),
        ...random.maybe(70, "egress", () => randomRules(random, undefined, "egress")),
        ...random.maybe(50, "labelsToApply", () => randomLabels(random)),
      },
    }),
  );
  return [...tiers, ...profiles];
}

function hostEndpoints(random: Random): KubeObject[] {
  return random.some(0, 3, (index) =>
    stored({
      kind: "HostEndpoint",
      metadata: { name: `hep${index}`, labels: randomLabels(random) },
      spec: {
        node: random.chance(80) ? NODE : "node-b",
        ...random.of([{ interfaceName: "eth0" }, { interfaceName: "*" }, {}, { interfaceName: "*" }]),
        expectedIPs: [random.of(["172.16.0.1", "fd16::1", "172.16.0.9"])],
        ...random.maybe(50, "profiles", () =>
          random.some(1, 2, () => random.of(["profile0", "profile1", vendorNames.hostEndpoints.allowAllProfile])),
        ),
        ports: PORT_NAMES.filter(() => random.chance(30)).map((name) => ({
          name,
          port: random.of([80, 53]),
          protocol: "TCP",
        })),
      },
    }),
  );
}

function configuration(random: Random): KubeObject {
  return stored({
    kind: "DataplaneConfiguration",
    metadata: { name: random.chance(80) ? "default" : `node.${NODE}` },
    spec: {
      ...random.maybe(50, "defaultEndpointToHostAction", () => random.of(["Accept", "Drop", "Return"])),
      ...random.maybe(40, "failsafeInboundHostPorts", () =>
        random.some(0, 2, () => ({
          port: random.of([80, 53]),
          ...random.maybe(70, "protocol", () => random.of(["TCP", "UDP"])),
          ...random.maybe(30, "net", () => random.of(NETS_V4)),
        })),
      ),
      ...random.maybe(40, "failsafeOutboundHostPorts", () => [
        { port: random.of([80, 53]), protocol: random.of(["TCP", "UDP"]) },
      ]),
    },
  });
}
