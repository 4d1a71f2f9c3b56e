import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import type { ServicePort } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { conformanceData } from "./conformance.ts";

/** One state a public service proxy was in, as our model has it, and the new connections that were tried in it. */
export interface ServiceState {
  id: string;
  proxy: "nftables" | "iptables";
  family: 4 | 6;
  services: ReadonlyMap<string, ServicePort>;
  surroundings: Surroundings;
  flows: ServiceConnection[];
}

/** What is not in the model of services and decides all the same. */
export interface Surroundings {
  /** Every address of the node. */
  nodeAddresses: string[];
  /** Those node ports are on. */
  nodePortAddresses: string[];
  /** The address others know the node by. */
  nodeAddress: string;
  /** Where pods are; empty where nobody knows them. */
  podNets: string[];
  /** Where cluster addresses come from; empty where nobody said. */
  serviceNets: string[];
}

export interface ServiceConnection {
  name: string;
  protocol: 6 | 17 | 132;
  source: string;
  sourceKind: "pod" | "node" | "external";
  destination: string;
  destinationPort: number;
  expect: ConnectionExpectation;
  /** Why our data planes do something else on purpose, or are never asked. */
  outOfScope?: OutOfScope;
}

/** `pass`: services have nothing to do with the packet. Backends are `ADDRESS:PORT`, with brackets in IPv6, ordered. */
export type ConnectionExpectation =
  | { result: "backends"; backends: string[]; masquerade: boolean }
  | { result: "reject" | "drop" | "pass" };

/** Everything that is out of scope, with its reason. */
export const OUT_OF_SCOPE = {
  sctp: "SCTP services are refused with a problem",
  masqueradeAll: "there is no setting that hides clients of cluster addresses",
  podsUnknown: "pods are always known here: the data plane connected them",
  loopback: "sockets that ask a loopback address are translated when they connect; no packet with one is",
  nodePortAddresses: "node ports are on every address of the node; the proxy's setting for some of them is not offered",
  iptablesOnly:
    "a port the service does not have is refused, as the nftables proxy does; the iptables proxy lets it pass",
} as const;
export type OutOfScope = keyof typeof OUT_OF_SCOPE;

interface FlowCase {
  id: string;
  proxy: "nftables" | "iptables";
  config: {
    ipFamily: "IPv4" | "IPv6";
    nodeName: string;
    nodeIP: string;
    localIPs: string[];
    nodePortMatchAll: boolean;
    nodePortIPs: string[];
    masqueradeAll: boolean;
    localDetector: { mode: "clusterCIDR"; cidr: string } | { mode: "none" };
    serviceCIDRs: string[] | null;
  };
  services: Omit<KubeObject, "apiVersion" | "kind">[];
  endpointSlices: Omit<KubeObject, "apiVersion" | "kind">[];
  flows: Flow[];
}

interface Flow {
  name: string;
  protocol: "TCP" | "UDP" | "SCTP";
  sourceIP: string;
  sourceKind: ServiceConnection["sourceKind"];
  destIP: string;
  destPort: number;
  expect: { result: "backends" | "reject" | "drop" | "none" | "accept"; backends: string[]; masquerade: boolean };
}

interface SelectionCase {
  name: string;
  /** Whether hints for nodes count at all. */
  preferSameTrafficDistribution: boolean;
  nodeName: string;
  nodeLabels: Record<string, string>;
  service: { internalTrafficPolicy: string; externalTrafficPolicy: string; externallyAccessible: boolean };
  endpoints: {
    endpoint: string;
    ready: boolean;
    serving: boolean;
    terminating: boolean;
    local: boolean;
    zoneHints: string[];
    nodeHints: string[];
  }[];
  expect: { clusterEndpoints: string[]; localEndpoints: string[]; hasAnyEndpoints: boolean };
}

const PROTOCOLS = { TCP: 6, UDP: 17, SCTP: 132 } as const;

/** The public cases, or undefined where this machine has none. */
export function serviceCases(): { states: ServiceState[]; selections: SelectionCase[] } | undefined {
  const data = conformanceData<{ flowCases: FlowCase[]; endpointSelectionCases: SelectionCase[] }>(
    "service-flow-cases.json",
  );
  return data && { states: data.flowCases.map(stateOf), selections: data.endpointSelectionCases };
}

function stateOf(found: FlowCase): ServiceState {
  const { id, proxy, config, flows } = found;
  return {
    id,
    proxy,
    family: config.ipFamily === "IPv4" ? 4 : 6,
    services: servicesOf(found),
    surroundings: {
      nodeAddresses: config.localIPs,
      nodePortAddresses: proxy === "iptables" && config.nodePortMatchAll ? config.localIPs : config.nodePortIPs,
      nodeAddress: config.nodeIP,
      podNets: config.localDetector.mode === "none" ? [] : [config.localDetector.cidr],
      serviceNets: config.serviceCIDRs ?? [],
    },
    flows: flows.map((flow) => flowOf(flow, found)),
  };
}

function servicesOf({ config, services, endpointSlices }: FlowCase): ReadonlyMap<string, ServicePort> {
  const calculator = createCalculator(config.nodeName, vendorNames);
  for (const service of services) calculator.set({ ...service, apiVersion: "v1", kind: "Service" } as KubeObject);
  for (const slice of endpointSlices) {
    calculator.set({ ...slice, apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice" } as KubeObject);
  }
  const model = new ModelCopy();
  const delta = calculator.takeDelta();
  if (delta) model.apply(delta);
  return model.services;
}

function flowOf(flow: Flow, state: FlowCase): ServiceConnection {
  const { result, backends, masquerade } = flow.expect;
  const outOfScope = whyOutOfScope(flow, state);
  return {
    name: flow.name,
    protocol: PROTOCOLS[flow.protocol],
    source: flow.sourceIP,
    sourceKind: flow.sourceKind,
    destination: flow.destIP,
    destinationPort: flow.destPort,
    expect:
      result === "backends"
        ? { result, backends: [...backends].sort(), masquerade }
        : { result: result === "none" || result === "accept" ? "pass" : result },
    ...(outOfScope ? { outOfScope } : {}),
  };
}

function whyOutOfScope(flow: Flow, { config, proxy, services }: FlowCase): OutOfScope | undefined {
  if (flow.protocol === "SCTP") return "sctp";
  if (["127.0.0.1", "::1"].includes(flow.destIP)) return "loopback";
  if (config.masqueradeAll) return "masqueradeAll";
  if (config.localDetector.mode === "none") return "podsUnknown";
  if (flow.expect.result !== "none") return undefined;
  const specs = services.map(({ spec }) => spec as { clusterIP?: string; ports?: { nodePort?: number }[] });
  if (proxy === "iptables" && specs.some(({ clusterIP }) => clusterIP === flow.destIP)) return "iptablesOnly";
  const nodePorts = specs.flatMap(({ ports }) => ports?.map(({ nodePort }) => nodePort) ?? []);
  return nodePorts.includes(flow.destPort) ? "nodePortAddresses" : undefined;
}
