import { choosePools, tunnelPools } from "../../src/agent/ipam/choose-pools.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import type { BGPConfiguration } from "../../src/api/resources/bgp-configuration.ts";
import type { BGPFilter } from "../../src/api/resources/bgp-filter.ts";
import type { BGPPeer } from "../../src/api/resources/bgp-peer.ts";
import type { IPReservation } from "../../src/api/resources/ip-reservation.ts";
import type { KubeControllersConfiguration } from "../../src/api/resources/kube-controllers-configuration.ts";
import type { BgpInputs } from "../../src/calc/bgp/bgp-inputs.ts";
import { birdConfig } from "../../src/calc/bgp/bird-config.ts";
import { calculateBgp } from "../../src/calc/bgp/calculate-bgp.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import type { ClusterNode } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { desiredEndpoints } from "../../src/controllers/host-endpoints/desired-endpoints.ts";
import { hostEndpointRules } from "../../src/controllers/host-endpoints/host-endpoint-rules.ts";
import { nodeFacts } from "../../src/controllers/host-endpoints/node-facts.ts";
import { isForPools } from "../../src/controllers/load-balancer/service-request.ts";
import type { ServiceObject } from "../../src/controllers/orchestrator-objects.ts";
import { effectiveSettings } from "../../src/controllers/settings/effective-settings.ts";
import { blockCandidates } from "../../src/ipam/block-candidates.ts";
import { givableTo } from "../../src/ipam/givable.ts";
import type { Pool } from "../../src/ipam/ipam-kinds.ts";
import { V4 } from "../../src/kit/ip.ts";
import type { Log } from "../../src/kit/log.ts";
import { severityLog } from "../../src/kit/severity-log.ts";
import type { KindTable, Shown } from "./field-table.ts";

/** Pools and addresses, the controllers, and BGP. */
const object = <T>(kind: string, name: string, spec: unknown) =>
  ({ apiVersion: "crd.vendor.io/v1", kind, metadata: { name }, spec }) as T;
const node = (name: string): KubeObject => ({
  ...{ apiVersion: "v1", kind: "Node" },
  metadata: { name, labels: { name }, annotations: {} },
  status: { addresses: [{ type: "InternalIP", address: `10.0.0.${name.slice(1)}` }] },
});

const network = (at: number): ClusterNode => ({
  ...{ name: `n${at}`, local: at === 1, addressV4: `10.0.0.${at}`, addressV6: null },
  ...{ subnetV4: "10.0.0.0/24", subnetV6: null, addresses: [], dataplane: null },
  vtep: { mac: "", addressV4: null, addressV6: null },
});
function bird(change: Partial<BgpInputs>): string {
  const { model } = calculateBgp({
    ...{ node: "n1", nodes: [node("n1"), node("n2")], switching: false },
    ...{ configurations: [], peers: [], filters: [], pools: [], password: ({ name, key }) => `${name}-${key}` },
    model: { nodes: new Map([1, 2].map((at) => [`n${at}`, network(at)])), routes: new Map(), services: new Map() },
    ...change,
  });
  return birdConfig(model!);
}

const inPool = (spec: object) => {
  const pool = object<Pool>("IPPool", "planted", spec);
  const other = object<Pool>("IPPool", "other", { cidr: "10.200.0.0/16" });
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "shop" } };
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop", labels: { team: "blue" } } };
  const calculator = createCalculator("n1", vendorNames);
  for (const one of [node("n1"), node("n2"), pool]) calculator.set(one as KubeObject);
  calculator.inSync();
  const model = new ModelCopy();
  const delta = calculator.takeDelta();
  if (delta) model.apply(delta);
  const [block] = blockCandidates(pool, "n1", () => false);
  return [
    choosePools([pool, other], { pod, namespace, nodeLabels: {} }).v4.map(({ metadata }) => metadata.name),
    tunnelPools([pool], V4, {}).map(({ metadata }) => metadata.name),
    block && [block.base, block.length],
    [model.settings, model.routes],
    bird({ pools: [pool] }),
  ];
};

type Controllers = KubeControllersConfiguration["spec"];
const controllers = (spec: Controllers) => {
  const settings = effectiveSettings(spec, { enabled: undefined, autoHostEndpoints: undefined });
  const interfaces = [{ name: "eth0", addresses: ["192.0.2.1"] }];
  const here = { ...nodeFacts(node("n1"), ["192.0.2.1"]), interfaces };
  const { node: ofNodes, loadBalancer } = settings.controllers;
  const service = { metadata: { name: "web" }, spec: { type: "LoadBalancer" } } as ServiceObject;
  return [
    logged(settings.logSeverityScreen),
    loadBalancer && isForPools(service, loadBalancer),
    ofNodes && desiredEndpoints(here, hostEndpointRules(ofNodes.hostEndpoint)),
  ];
};
function logged(severity: NonNullable<Controllers["logSeverityScreen"]>): string[] {
  const lines: string[] = [];
  const write = (_: object, message: string) => void lines.push(message);
  const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
  const quiet = severityLog(log, () => severity);
  quiet.debug({}, "debug");
  quiet.info({}, "info");
  return lines;
}
const TEMPLATE = { generateName: "x", interfaceCIDRs: ["10.0.0.0/24"], nodeSelector: "all()" };
const hostEndpoints = (...templates: object[]) => ({
  controllers: { node: { hostEndpoint: { autoCreate: "Enabled", templates } } },
});
const template = (change: object, base: object = TEMPLATE): Shown => ({
  ...{ base: hostEndpoints(base), set: hostEndpoints({ ...base, ...change }) },
});

const configuration = (spec: object) =>
  bird({ configurations: [object<BGPConfiguration>("BGPConfiguration", "default", spec)] });
const PEER = { peerIP: "10.0.0.9", asNumber: 65_001 };
const peer = (spec: object) =>
  bird({
    peers: [object<BGPPeer>("BGPPeer", "planted", spec)],
    filters: [object<BGPFilter>("BGPFilter", "named", { importV4: [{ action: "Reject" }] })],
  });
const reflected = { asNumber: undefined, peerIP: undefined };
const filter = (spec: object) =>
  bird({
    peers: [
      object<BGPPeer>("BGPPeer", "router", { ...PEER, filters: ["planted"] }),
      object<BGPPeer>("BGPPeer", "router6", { ...PEER, peerIP: "fd00::9", filters: ["planted"] }),
    ],
    filters: [object<BGPFilter>("BGPFilter", "planted", spec)],
  });
const RANGE = { cidr: "203.0.113.0/24" };
const secret = (name: string, key: string) => ({ secretKeyRef: { name, key } });
const COMMUNITY = { name: "ours", value: "64512:100" };
const ADVERTISED = { cidr: "203.0.113.0/24", communities: ["64512:1"] };

/** The rules of one list of a filter, as fields. */
function filterRules(list: "importV4" | "exportV4" | "importV6" | "exportV6"): Record<string, Shown> {
  const [net, other, min, max] = list.endsWith("4")
    ? ["10.0.0.0/8", "11.0.0.0/8", 16, 24]
    : ["fd00::/8", "fc00::/8", 48, 64];
  const inside = { action: "Reject", cidr: net, matchOperator: "In" };
  const row = (base: object, change: object): Shown => ({
    ...{ base: { [list]: [base] }, set: { [list]: [{ ...base, ...change }] } },
  });
  return {
    [`${list}.action`]: row({ action: "Reject" }, { action: "Accept" }),
    [`${list}.cidr`]: row(inside, { cidr: other }),
    [`${list}.matchOperator`]: row(inside, { matchOperator: "NotIn" }),
    [`${list}.prefixLength.min`]: row(inside, { prefixLength: { min } }),
    [`${list}.prefixLength.max`]: row(inside, { prefixLength: { max } }),
    [`${list}.source`]: row({ action: "Reject" }, { source: "RemotePeers" }),
  };
}

export const NETWORK_TABLES: readonly KindTable[] = [
  {
    ...{ noun: "ipPool", base: { cidr: "10.100.0.0/16" }, seenIn: inPool },
    fields: {
      cidr: { set: { cidr: "10.101.0.0/16" } },
      blockSize: { set: { blockSize: 28 } },
      vxlanMode: { set: { vxlanMode: "Always" } },
      ipipMode: { set: { ipipMode: "Always" } },
      natOutgoing: { set: { natOutgoing: true } },
      disabled: { set: { disabled: true } },
      disableBGPExport: { set: { disableBGPExport: true } },
      nodeSelector: { set: { nodeSelector: "has(pods)" } },
      namespaceSelector: { set: { namespaceSelector: 'team == "red"' } },
      allowedUses: { set: { allowedUses: ["Tunnel"] } },
      assignmentMode: { set: { assignmentMode: "Manual" } },
    },
  },
  {
    noun: "ipReservation",
    seenIn: (spec: IPReservation["spec"]) => {
      const reservation = object<IPReservation>("IPReservation", "planted", spec);
      const owner = { handle: "k8s-pod-network.web", facts: {} };
      return givableTo(owner, { users: new Map() }, [reservation]).may("10.100.0.7");
    },
    fields: { reservedCIDRs: { set: { reservedCIDRs: ["10.100.0.0/28"] } } },
  },
  {
    ...{ noun: "ipamConfiguration", seenIn: (spec) => spec },
    fields: {
      strictAffinity: { scenario: "test/agent/ipam.test.ts" },
      autoAllocateBlocks: { scenario: "test/agent/ipam.test.ts" },
      maxBlocksPerHost: { scenario: "test/agent/ipam.test.ts" },
    },
  },
  {
    ...{ noun: "kubeControllersConfiguration", seenIn: controllers },
    fields: {
      logSeverityScreen: { set: { logSeverityScreen: "Debug" } },
      prometheusMetricsPort: { scenario: "test/controllers/program.test.ts" },
      etcdV3CompactionPeriod: { scenario: "test/controllers/etcd-copies.test.ts" },
      "controllers.loadBalancer.assignIPs": {
        base: { controllers: { loadBalancer: {} } },
        set: { controllers: { loadBalancer: { assignIPs: "RequestedServicesOnly" } } },
      },
      "controllers.node.reconcilerPeriod": { scenario: "test/controllers/host-endpoints.test.ts" },
      "controllers.node.leakGracePeriod": { scenario: "test/controllers/ipam-garbage.test.ts" },
      "controllers.node.hostEndpoint.autoCreate": {
        base: { controllers: { node: {} } },
        set: { controllers: { node: { hostEndpoint: { autoCreate: "Enabled" } } } },
      },
      "controllers.node.hostEndpoint.createDefaultHostEndpoint": {
        base: { controllers: { node: { hostEndpoint: { autoCreate: "Enabled" } } } },
        set: { controllers: { node: { hostEndpoint: { createDefaultHostEndpoint: "Disabled" } } } },
      },
      "controllers.node.hostEndpoint.templates.generateName": template({ generateName: "y" }),
      "controllers.node.hostEndpoint.templates.nodeSelector": template({ nodeSelector: "has(nothing)" }),
      "controllers.node.hostEndpoint.templates.interfaceCIDRs": template({ interfaceCIDRs: ["192.0.2.0/24"] }),
      "controllers.node.hostEndpoint.templates.interfacePattern": template({ interfacePattern: "^eth" }),
      "controllers.node.hostEndpoint.templates.labels": template({ labels: { made: "here" } }),
    },
  },
  {
    ...{ noun: "bgpConfiguration", seenIn: configuration },
    fields: {
      asNumber: { set: { asNumber: 64_600 } },
      nodeToNodeMeshEnabled: { set: { nodeToNodeMeshEnabled: false } },
      listenPort: { set: { listenPort: 1179 } },
      bindMode: { set: { bindMode: "NodeIP" } },
      logSeverityScreen: { set: { logSeverityScreen: "Debug" } },
      "serviceClusterIPs.cidr": { set: { serviceClusterIPs: [RANGE] } },
      "serviceExternalIPs.cidr": { set: { serviceExternalIPs: [RANGE] } },
      "serviceLoadBalancerIPs.cidr": { set: { serviceLoadBalancerIPs: [RANGE] } },
      "communities.name": {
        base: { communities: [COMMUNITY], prefixAdvertisements: [{ ...ADVERTISED, communities: ["ours"] }] },
        set: { communities: [{ ...COMMUNITY, name: "another" }] },
      },
      "communities.value": {
        base: { communities: [COMMUNITY], prefixAdvertisements: [{ ...ADVERTISED, communities: ["ours"] }] },
        set: { communities: [{ ...COMMUNITY, value: "64512:200" }] },
      },
      "prefixAdvertisements.cidr": {
        base: { prefixAdvertisements: [ADVERTISED] },
        set: { prefixAdvertisements: [{ ...ADVERTISED, cidr: "198.51.100.0/24" }] },
      },
      "prefixAdvertisements.communities": {
        base: { prefixAdvertisements: [ADVERTISED] },
        set: { prefixAdvertisements: [{ ...ADVERTISED, communities: ["64512:2"] }] },
      },
      "nodeMeshPassword.secretKeyRef.name": {
        base: { nodeMeshPassword: secret("one", "key") },
        set: { nodeMeshPassword: secret("two", "key") },
      },
      "nodeMeshPassword.secretKeyRef.key": {
        base: { nodeMeshPassword: secret("one", "key") },
        set: { nodeMeshPassword: secret("one", "other") },
      },
      nodeMeshMaxRestartTime: { set: { nodeMeshMaxRestartTime: "30s" } },
      ignoredInterfaces: { set: { ignoredInterfaces: ["storage0"] } },
    },
  },
  {
    ...{ noun: "bgpPeer", base: PEER, seenIn: peer },
    fields: {
      node: { set: { node: "n2" } },
      nodeSelector: { set: { nodeSelector: 'name == "n2"' } },
      peerIP: { set: { peerIP: "10.0.0.8" } },
      asNumber: { set: { asNumber: 65_002 } },
      peerSelector: { base: reflected, set: { peerSelector: 'name == "n2"' } },
      localASNumber: { set: { localASNumber: 64_999 } },
      "password.secretKeyRef.name": {
        base: { ...PEER, password: secret("one", "key") },
        set: { password: secret("two", "key") },
      },
      "password.secretKeyRef.key": {
        base: { ...PEER, password: secret("one", "key") },
        set: { password: secret("one", "other") },
      },
      sourceAddress: { set: { sourceAddress: "None" } },
      keepOriginalNextHop: { set: { keepOriginalNextHop: true } },
      nextHopMode: { set: { nextHopMode: "Self" } },
      maxRestartTime: { set: { maxRestartTime: "30s" } },
      numAllowedLocalASNumbers: { set: { numAllowedLocalASNumbers: 2 } },
      ttlSecurity: { set: { ttlSecurity: 1 } },
      reachableBy: { set: { reachableBy: "10.0.0.254" } },
      filters: { set: { filters: ["named"] } },
    },
  },
  {
    ...{ noun: "bgpFilter", seenIn: filter },
    fields: {
      ...filterRules("importV4"),
      ...filterRules("exportV4"),
      ...filterRules("importV6"),
      ...filterRules("exportV6"),
    },
  },
  {
    // The agent reads it, and answers in its status: seen with BIRD alone.
    ...{ noun: "nodeStatus", seenIn: () => undefined },
    fields: {
      node: { scenario: "test/agent/bgp.test.ts" },
      classes: { scenario: "test/agent/bgp.test.ts" },
      updatePeriodSeconds: { scenario: "test/agent/bgp.test.ts" },
    },
  },
];
