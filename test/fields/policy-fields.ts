import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import type { KindTable } from "./field-table.ts";
import { STAGED_KUBERNETES_FIELDS, stagedPolicy, stagedTables } from "./staged-fields.ts";

/** Policy, and what it selects: the model of node `here` in a cluster small enough to read. */
const stored = (kind: string, name: string, spec: object, more: object = {}): KubeObject => ({
  ...{ apiVersion: "crd.vendor.io/v1", kind, spec },
  metadata: { name, ...more },
});
const core = (kind: string, name: string, metadata: object = {}, more: object = {}): KubeObject => ({
  ...{ apiVersion: "v1", kind, ...more },
  metadata: { name, ...metadata },
});
const pod = (name: string, namespace: string, ip: string): KubeObject => ({
  ...core("Pod", name, { namespace, labels: { app: name } }),
  spec: {
    ...{ nodeName: "here", serviceAccountName: "runner" },
    containers: [{ name: "main", ports: [{ name: "http", containerPort: 8080 }] }],
  },
  status: { phase: "Running", podIPs: [{ ip }] },
});

const CLUSTER: readonly KubeObject[] = [
  core("Node", "here", {}, { status: { addresses: [{ type: "InternalIP", address: "192.0.2.1" }] } }),
  core("Namespace", "shop", { labels: { team: "blue" } }),
  core("Namespace", "bank", { labels: { team: "red" } }),
  core("ServiceAccount", "runner", { namespace: "shop", labels: { trusted: "yes" } }),
  core("ServiceAccount", "runner", { namespace: "bank" }),
  pod("web", "shop", "10.0.0.1"),
  pod("db", "bank", "10.0.0.2"),
  stored("GlobalNetworkSet", "partners", { nets: ["198.51.100.0/24"] }, { labels: { role: "partner" } }),
  stored("Tier", "default", { order: 1_000_000, defaultAction: "Deny" }),
];
const UPLINK = stored("HostEndpoint", "uplink", { node: "here", interfaceName: "eth0" }, { labels: { host: "yes" } });

function tables(...objects: KubeObject[]): unknown {
  const calculator = createCalculator("here", vendorNames);
  for (const object of [...CLUSTER, UPLINK, ...objects]) calculator.set(object);
  calculator.inSync();
  const model = new ModelCopy();
  const delta = calculator.takeDelta();
  if (delta) model.apply(delta);
  const { endpoints, hostEndpoints, policies, profiles, ipSets } = model;
  return [endpoints, hostEndpoints, policies, profiles, ipSets];
}

const ALL = { action: "Allow" };
const namespaced = (spec: object) =>
  tables(stored("NetworkPolicy", "default.planted", spec, { namespace: "shop" }), second("NetworkPolicy"));
const global = (spec: object) =>
  tables(stored("GlobalNetworkPolicy", "default.planted", spec), second("GlobalNetworkPolicy"));
/** Another policy, so that order says something. */
const second = (kind: string) =>
  stored(kind, "default.second", { order: 10, ingress: [ALL] }, kind === "NetworkPolicy" ? { namespace: "shop" } : {});

const POLICY = {
  tier: { scenario: "test/v3api/rules.test.ts" },
  order: { base: { ingress: [ALL] }, set: { order: 5 } },
  selector: { base: { ingress: [ALL] }, set: { selector: 'app == "nobody"' } },
  serviceAccountSelector: { base: { ingress: [ALL] }, set: { serviceAccountSelector: "trusted == 'no'" } },
  types: { base: { ingress: [ALL] }, set: { types: ["Egress"] } },
  ingress: { base: { types: ["Ingress"] }, set: { ingress: [ALL] } },
  egress: { base: { types: ["Egress"] }, set: { egress: [ALL] } },
} as const;

const GLOBAL = {
  namespaceSelector: { base: { ingress: [ALL] }, set: { namespaceSelector: 'team == "red"' } },
  preDNAT: { base: { ingress: [ALL], applyOnForward: true }, set: { preDNAT: true } },
  applyOnForward: { base: { ingress: [ALL] }, set: { applyOnForward: true } },
} as const;

const STAGED = { stagedAction: { base: { ingress: [ALL] }, set: { stagedAction: "Ignore" } } } as const;
const staged = (kind: string, namespace?: string) => (spec: object) =>
  stagedTables([...CLUSTER, UPLINK], stagedPolicy(kind, spec, namespace));

const rule = (spec: object) =>
  tables(stored("GlobalNetworkPolicy", "default.planted", { selector: "has(app)", ingress: [spec], egress: [] }));
const TCP = { action: "Allow", protocol: "TCP" };
const ICMP = { action: "Allow", protocol: "ICMP" };
const services = [
  core("Service", "api", { namespace: "shop" }, { spec: { clusterIP: "10.96.0.9", ports: [{ port: 80 }] } }),
  {
    ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4" },
    metadata: { name: "api-1", namespace: "shop", labels: { "kubernetes.io/service-name": "api" } },
    endpoints: [{ addresses: ["10.0.0.1"], conditions: { ready: true } }],
    ports: [{ port: 8080, protocol: "TCP" }],
  },
  {
    ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4" },
    metadata: { name: "api-2", namespace: "bank", labels: { "kubernetes.io/service-name": "api" } },
    endpoints: [{ addresses: ["10.0.0.2"], conditions: { ready: true } }],
    ports: [{ port: 8080, protocol: "TCP" }],
  },
] as KubeObject[];
const toService = (direction: "ingress" | "egress") => (spec: object) =>
  tables(stored("GlobalNetworkPolicy", "default.planted", { selector: "has(app)", [direction]: [spec] }), ...services);

const entity = (side: "source" | "destination") => {
  const on = (base: object, set: object) => ({ base: { ...base, [side]: {} }, set: { [side]: set } });
  const direction = side === "source" ? "ingress" : "egress";
  return {
    [`${side}.nets`]: on(ALL, { nets: ["198.51.100.0/24"] }),
    [`${side}.notNets`]: on(ALL, { notNets: ["198.51.100.0/24"] }),
    [`${side}.selector`]: on(ALL, { selector: 'app == "db"' }),
    [`${side}.notSelector`]: on(ALL, { notSelector: 'app == "db"' }),
    [`${side}.namespaceSelector`]: on(ALL, { namespaceSelector: 'team == "red"' }),
    [`${side}.ports`]: on(TCP, { ports: [80, "http"] }),
    [`${side}.notPorts`]: on(TCP, { notPorts: ["1000:2000"] }),
    [`${side}.serviceAccounts.names`]: on(ALL, { serviceAccounts: { names: ["runner"] } }),
    [`${side}.serviceAccounts.selector`]: on(ALL, { serviceAccounts: { selector: 'trusted == "yes"' } }),
    [`${side}.services.name`]: {
      base: { ...ALL, [side]: { services: { name: "nobody", namespace: "shop" } } },
      set: { [side]: { services: { name: "api" } } },
      seenIn: toService(direction),
    },
    [`${side}.services.namespace`]: {
      base: { ...ALL, [side]: { services: { name: "api", namespace: "shop" } } },
      set: { [side]: { services: { namespace: "bank" } } },
      seenIn: toService(direction),
    },
  };
};

const hostEndpoint = (spec: object) =>
  tables(
    stored("HostEndpoint", "uplink", spec, { labels: { host: "yes" } }),
    stored("Profile", "open", { ingress: [ALL] }),
    stored("GlobalNetworkPolicy", "default.planted", {
      selector: "has(host)",
      ingress: [{ ...TCP, destination: { ports: ["named"] } }],
    }),
  );
const withSet = (kind: string) => (spec: object) =>
  tables(
    stored(kind, "planted", spec, { labels: { set: "yes" }, ...(kind === "NetworkSet" ? { namespace: "shop" } : {}) }),
    stored("GlobalNetworkPolicy", "default.from", { ingress: [{ ...ALL, source: { selector: "has(set)" } }] }),
  );
const withTier = (spec: object) =>
  tables(
    stored("Tier", "planted", spec),
    stored("Tier", "other", { order: 50 }),
    ...["planted", "other"].map((tier) =>
      stored("GlobalNetworkPolicy", `${tier}.all`, { tier, selector: "has(app)", ingress: [ALL] }),
    ),
  );
const withProfile = (spec: object) =>
  tables(
    stored("Profile", "planted", spec),
    stored("HostEndpoint", "uplink", { node: "here", interfaceName: "eth0", profiles: ["planted"] }),
    stored("GlobalNetworkPolicy", "default.labelled", { selector: "has(given)", ingress: [ALL] }),
  );

export const POLICY_TABLES: readonly KindTable[] = [
  { noun: "networkPolicy", seenIn: namespaced, fields: POLICY },
  {
    ...{ noun: "globalNetworkPolicy", seenIn: global },
    fields: { ...POLICY, ...GLOBAL },
  },
  { noun: "stagedNetworkPolicy", seenIn: staged("StagedNetworkPolicy", "shop"), fields: { ...STAGED, ...POLICY } },
  {
    ...{ noun: "stagedGlobalNetworkPolicy", seenIn: staged("StagedGlobalNetworkPolicy") },
    fields: { ...STAGED, ...POLICY, ...GLOBAL },
  },
  {
    ...{ noun: "stagedKubernetesNetworkPolicy", seenIn: staged("StagedKubernetesNetworkPolicy", "shop") },
    fields: STAGED_KUBERNETES_FIELDS,
  },
  {
    ...{ noun: "rule", base: ALL, seenIn: rule },
    fields: {
      action: { set: { action: "Deny" } },
      ipVersion: { set: { ipVersion: 6 } },
      protocol: { set: { protocol: "UDP" } },
      notProtocol: { set: { notProtocol: "UDP" } },
      "icmp.type": { base: { ...ICMP, icmp: {} }, set: { icmp: { type: 8 } } },
      "icmp.code": { base: { ...ICMP, icmp: { type: 8 } }, set: { icmp: { code: 1 } } },
      "notICMP.type": { base: { ...ICMP, notICMP: {} }, set: { notICMP: { type: 8 } } },
      "notICMP.code": { base: { ...ICMP, notICMP: { type: 8 } }, set: { notICMP: { code: 1 } } },
      ...entity("source"),
      ...entity("destination"),
      "http.methods": { base: { ...TCP, http: {} }, set: { http: { methods: ["GET"] } } },
      "http.paths.exact": { base: { ...TCP, http: {} }, set: { http: { paths: [{ exact: "/a" }] } } },
      "http.paths.prefix": { base: { ...TCP, http: {} }, set: { http: { paths: [{ prefix: "/a" }] } } },
      "metadata.annotations": { only: "notes for people, which come back as they were written" },
    },
  },
  {
    ...{ noun: "hostEndpoint", base: { node: "here", interfaceName: "eth0" }, seenIn: hostEndpoint },
    fields: {
      node: { set: { node: "there" } },
      interfaceName: { set: { interfaceName: "*" } },
      expectedIPs: { set: { expectedIPs: ["192.0.2.1"] } },
      profiles: { set: { profiles: ["open"] } },
      "ports.name": {
        base: { node: "here", expectedIPs: ["192.0.2.1"], ports: [{ name: "other", port: 80, protocol: "TCP" }] },
        set: { ports: [{ name: "named", port: 80, protocol: "TCP" }] },
      },
      "ports.port": {
        base: { node: "here", expectedIPs: ["192.0.2.1"], ports: [{ name: "named", port: 80, protocol: "TCP" }] },
        set: { ports: [{ name: "named", port: 81, protocol: "TCP" }] },
      },
      "ports.protocol": {
        base: { node: "here", expectedIPs: ["192.0.2.1"], ports: [{ name: "named", port: 80, protocol: "TCP" }] },
        set: { ports: [{ name: "named", port: 80, protocol: "UDP" }] },
      },
    },
  },
  { noun: "networkSet", seenIn: withSet("NetworkSet"), fields: { nets: { set: { nets: ["198.51.100.7"] } } } },
  {
    noun: "globalNetworkSet",
    seenIn: withSet("GlobalNetworkSet"),
    fields: { nets: { set: { nets: ["198.51.100.7"] } } },
  },
  {
    ...{ noun: "tier", base: { order: 100 }, seenIn: withTier },
    fields: { order: { set: { order: 1 } }, defaultAction: { set: { defaultAction: "Pass" } } },
  },
  {
    ...{ noun: "profile", seenIn: withProfile },
    fields: {
      ingress: { set: { ingress: [ALL] } },
      egress: { set: { egress: [ALL] } },
      labelsToApply: { set: { labelsToApply: { given: "yes" } } },
    },
  },
];
