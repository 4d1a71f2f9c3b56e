import type { KubeObject } from "../../src/api/object.ts";
import type { Random } from "./random.ts";
import { ACCOUNTS, LABELS, NAMESPACES, NETS_V4, NETS_V6, PORT_NAMES, SERVICES } from "./random-names.ts";

type Json = Record<string, unknown>;

/** A policy of either scope, as it is stored, without its API version. */
export function randomPolicy(random: Random, index: number): Omit<KubeObject, "apiVersion"> {
  const namespace = random.chance(50) ? random.of(NAMESPACES) : undefined;
  const tier = random.of(["default", "default", "front", "rear"]);
  const preDNAT = namespace === undefined && random.chance(15);
  const name = `${tier}.${random.of(["a", "b", "c"])}${index}`;
  const kind = namespace === undefined ? "GlobalNetworkPolicy" : "NetworkPolicy";
  const global = {
    ...random.maybe(20, "namespaceSelector", () => randomSelector(random)),
    ...(preDNAT ? { preDNAT: true, applyOnForward: true } : random.maybe(30, "applyOnForward", () => true)),
  };
  return {
    kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    spec: {
      tier,
      ...random.maybe(70, "order", () => random.of([100, 1000])),
      ...random.maybe(60, "selector", () => randomSelector(random)),
      ...random.maybe(15, "serviceAccountSelector", () => randomSelector(random)),
      ...random.maybe(60, "types", () => random.of([["Ingress"], ["Egress"], ["Ingress", "Egress"]])),
      ...random.maybe(75, "ingress", () => randomRules(random, namespace, "ingress")),
      ...(preDNAT ? {} : random.maybe(60, "egress", () => randomRules(random, namespace, "egress"))),
      ...(namespace === undefined ? global : {}),
    },
  };
}

export function randomRules(random: Random, namespace: string | undefined, direction: "ingress" | "egress"): Json[] {
  return random.some(0, 4, () => randomRule(random, namespace, direction));
}

function randomRule(random: Random, namespace: string | undefined, direction: "ingress" | "egress"): Json {
  const protocol = random.chance(60)
    ? random.of(["TCP", "UDP", "TCP", "ICMP", "ICMPv6", "SCTP", 6, "17", 47])
    : undefined;
  const family = random.of([4, 4, 6] as const);
  const withService = random.chance(8);
  const peer = direction === "ingress" ? "source" : "destination";
  const side = (which: "source" | "destination") =>
    withService && which === peer
      ? { services: randomService(random, namespace) }
      : randomEntity(random, family, ["TCP", "UDP", "SCTP", 6, "17"].includes(protocol as string));
  const icmp = protocol === "ICMP" || protocol === "ICMPv6";
  return {
    action: random.of(["Allow", "Allow", "Deny", "Deny", "Pass", "Log"]),
    ...(protocol === undefined ? {} : { protocol }),
    ...random.maybe(8, "ipVersion", () => family),
    ...random.maybe(8, "notProtocol", () => random.of(["TCP", "UDP", "ICMP"])),
    ...(icmp ? random.maybe(50, "icmp", () => randomIcmp(random)) : {}),
    ...(icmp ? random.maybe(20, "notICMP", () => randomIcmp(random)) : {}),
    ...random.maybe(65, "source", () => side("source")),
    ...random.maybe(65, "destination", () => side("destination")),
  };
}

function randomIcmp(random: Random): Json {
  return { type: random.of([0, 8, 128]), ...random.maybe(30, "code", () => random.of([0, 1])) };
}

function randomService(random: Random, namespace: string | undefined): Json {
  const own = namespace !== undefined && random.chance(50);
  return { name: random.of(SERVICES), ...(own ? {} : { namespace: random.of(NAMESPACES) }) };
}

function randomEntity(random: Random, family: 4 | 6, ports: boolean): Json {
  const nets = () => random.some(1, 2, () => random.of(family === 4 ? NETS_V4 : NETS_V6));
  return {
    ...random.maybe(30, "nets", nets),
    ...random.maybe(15, "notNets", nets),
    ...random.maybe(35, "selector", () => randomSelector(random)),
    ...random.maybe(12, "notSelector", () => randomSelector(random)),
    ...random.maybe(20, "namespaceSelector", () => (random.chance(25) ? "global()" : randomSelector(random))),
    ...random.maybe(10, "serviceAccounts", () => ({
      ...random.maybe(60, "names", () => [random.of(ACCOUNTS)]),
      ...random.maybe(60, "selector", () => randomSelector(random)),
    })),
    ...(ports ? random.maybe(45, "ports", () => randomPorts(random)) : {}),
    ...(ports ? random.maybe(12, "notPorts", () => randomPorts(random)) : {}),
  };
}

function randomPorts(random: Random): (string | number)[] {
  return random.some(1, 3, () => random.of<string | number>([80, 53, "50:100", "8080:8081", 1234, ...PORT_NAMES]));
}

/** From the whole grammar, a little deep. */
function randomSelector(random: Random, depth = 0): string {
  const inner = () => randomSelector(random, depth + 1);
  const key = random.of(["app", "env"] as const);
  const value = () => `"${random.of(LABELS[key])}"`;
  if (depth < 2 && random.chance(35)) {
    return random.of([() => `${inner()} && ${inner()}`, () => `${inner()} || ${inner()}`, () => `!(${inner()})`])();
  }
  return random.of([
    () => "all()",
    () => `has(${key})`,
    () => `${key} == ${value()}`,
    () => `${key} == ${value()}`,
    () => `${key} != ${value()}`,
    () => `${key} in {${value()}, ${value()}}`,
    () => `${key} not in {${value()}}`,
    () => `${key} starts with "${random.of(["w", "p", "d"])}"`,
    () => `${key} ends with "${random.of(["b", "d", "t"])}"`,
    () => `${key} contains "${random.of(["e", "o", "x"])}"`,
  ])();
}

export function randomKubernetesPolicy(random: Random, index: number): KubeObject {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: `knp${index}`, namespace: random.of(NAMESPACES) },
    spec: {
      podSelector: labelSelector(random),
      ...random.maybe(50, "policyTypes", () => random.of([["Ingress"], ["Egress"], ["Ingress", "Egress"]])),
      ...random.maybe(70, "ingress", () => random.some(0, 2, () => kubernetesRule(random, "from"))),
      ...random.maybe(60, "egress", () => random.some(0, 2, () => kubernetesRule(random, "to"))),
    },
  };
}

function kubernetesRule(random: Random, peers: "from" | "to"): Json {
  return {
    ...random.maybe(75, peers, () => random.some(0, 2, () => kubernetesPeer(random))),
    ...random.maybe(60, "ports", () => random.some(0, 3, () => kubernetesPort(random))),
  };
}

function kubernetesPeer(random: Random): Json {
  if (random.chance(35)) {
    const v4 = random.chance(60);
    const except = v4 ? ["10.0.0.0/30", "10.0.0.4/30"] : ["fd00::/126"];
    const cidr = v4 ? random.of(["10.0.0.0/24", "0.0.0.0/0"]) : random.of(["fd00::/64", "::/0"]);
    return { ipBlock: { cidr, ...random.maybe(50, "except", () => [random.of(except)]) } };
  }
  const pod = random.maybe(60, "podSelector", () => labelSelector(random));
  return { ...pod, ...random.maybe("podSelector" in pod ? 40 : 100, "namespaceSelector", () => labelSelector(random)) };
}

function kubernetesPort(random: Random): Json {
  const port = random.of<string | number | undefined>([80, 53, undefined, ...PORT_NAMES]);
  return {
    ...random.maybe(70, "protocol", () => random.of(["TCP", "UDP", "SCTP"])),
    ...(port === undefined ? {} : { port }),
    ...(typeof port === "number" ? random.maybe(30, "endPort", () => port + random.below(40)) : {}),
  };
}

function labelSelector(random: Random): Json {
  const key = random.of(["app", "env"] as const);
  return random.of<() => Json>([
    () => ({}),
    () => ({ matchLabels: { [key]: random.of(LABELS[key]) } }),
    () => ({ matchExpressions: [{ key, operator: random.of(["In", "NotIn"]), values: [random.of(LABELS[key])] }] }),
    () => ({ matchExpressions: [{ key, operator: random.of(["Exists", "DoesNotExist"]) }] }),
  ])();
}
