import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { vendorNames } from "../names.ts";
import type { KubeObject } from "../object.ts";
import { RESOURCES } from "../resources/all.ts";
import { placesOf } from "../resources/resource.ts";
import { EXPLANATIONS } from "./explain.ts";
import type { ClusterFacts, ObservedNode } from "./facts.ts";
import { validateObject } from "./validate.ts";

const OPERATOR = "operator.vendor.io/v1";
const V3 = "vendor.io/v3";

function installation(spec: object, name = "default"): KubeObject {
  return { apiVersion: OPERATOR, kind: "Installation", metadata: { name }, spec: { variant: "OpenSource", ...spec } };
}
const network = (vendorNetwork: object, spec: object = {}) => installation({ ...spec, vendorNetwork });
const bpf = (more: object = {}) => network({ linuxDataplane: "BPF", ...more });
const pools = (...ipPools: object[]) => network({ ipPools });
const v3 = (kind: string, name: string, spec: object, metadata: object = {}): KubeObject => ({
  apiVersion: V3,
  kind,
  metadata: { name, ...metadata },
  spec,
});

function node(more: Partial<ObservedNode> = {}): ObservedNode {
  return {
    name: "n1",
    osImage: "Ubuntu 22.04.4 LTS",
    kernelVersion: "5.15.0-100-generic",
    architecture: "amd64",
    operatingSystem: "linux",
    addresses: [],
    controlPlane: false,
    addressAssignment: "unknown",
    ...more,
  };
}
const bottlerocket = node({ osImage: "Bottlerocket OS 1.20.0", kernelVersion: "6.1.90" });

type Row = [title: string, object: KubeObject, expected: string[], facts?: ClusterFacts];

const INSTALLATIONS: Row[] = [
  ["as the specification shows it", bpf({ hostPorts: null }), []],
  ["under another name", installation({}, "main"), ["NAME_NOT_DEFAULT"]],
  ["without a variant", { ...installation({}), spec: {} }, ["FIELD_MISSING"]],
  ["without a spec", { apiVersion: OPERATOR, kind: "Installation", metadata: { name: "default" } }, ["FIELD_MISSING"]],
  ["with a misspelt field", network({ linuxDataPlane: "BPF" }), ["UNKNOWN_FIELD"]],
  ["with a value nearly right", network({ linuxDataplane: "bpf" }), ["VALUE_NOT_ALLOWED"]],
  ["with a number as text", installation({ controlPlaneReplicas: "2" }), ["WRONG_TYPE"]],
  ["with too few replicas", installation({ controlPlaneReplicas: 0 }), ["VALUE_OUT_OF_RANGE"]],
  ["with a relative path", installation({ cni: { binDir: "opt/bin" } }), ["VALUE_MALFORMED"]],
  ["with eBPF and host ports", bpf({ hostPorts: { portMapping: "Enabled" } }), ["EBPF_HOST_PORTS_SET"]],
  [
    "with eBPF and IPIP",
    bpf({ ipPools: [{ cidr: "10.0.0.0/16", encapsulation: "IPIPCrossSubnet" }] }),
    ["EBPF_IPIP_POOL"],
  ],
  ["with the nftables data plane and IPIP", pools({ cidr: "10.0.0.0/16", encapsulation: "IPIP" }), []],
  ["with eBPF on etcd", bpf(), ["EBPF_NEEDS_KUBE_DATASTORE"], { datastore: "etcd" }],
  ["with the nftables data plane on etcd", network({ linuxDataplane: "Nftables" }), [], { datastore: "etcd" }],
  ["with eBPF and an old kernel", bpf(), ["EBPF_KERNEL_TOO_OLD"], { nodes: [node({ kernelVersion: "4.4.0" })] }],
  ["with eBPF and a mainframe", bpf(), ["EBPF_ARCHITECTURE"], { nodes: [node({ architecture: "s390x" })] }],
  [
    "with eBPF and a Windows node",
    bpf(),
    ["EBPF_MIXED_CLUSTER"],
    { nodes: [node(), node({ operatingSystem: "windows" })] },
  ],
  ["with eBPF and an IPVS proxy", bpf(), ["SERVICE_PROXY_IPVS"], { kind: "eks", serviceProxyMode: "ipvs" }],
  ["flexVolumePath on aks", network({ flexVolumePath: "/x" }), ["FLEX_VOLUME_PATH_PLATFORM"], { kind: "aks" }],
  [
    "flexVolumePath on eks without its image",
    network({ flexVolumePath: "/var/lib/kubelet/plugins" }),
    ["FLEX_VOLUME_PATH_PLATFORM"],
    { kind: "eks", nodes: [node()] },
  ],
  ["flexVolumePath of another value", network({ flexVolumePath: "/x" }), ["FLEX_VOLUME_PATH_VALUE"], { kind: "eks" }],
  ["flexVolumePath left out", network({}), ["FLEX_VOLUME_PATH_MISSING"], { kind: "eks", nodes: [bottlerocket] }],
  [
    "flexVolumePath as it should be",
    network({ flexVolumePath: "/var/lib/kubelet/plugins" }),
    [],
    { kind: "eks", nodes: [bottlerocket] },
  ],
  ["for another kind of cluster", installation({ clusterKind: "aks" }), ["CLUSTER_KIND_MISMATCH"], { kind: "eks" }],
  [
    "with a plugin and another's addresses",
    installation({ cni: { type: "AmazonVPC", ipam: { type: "Vendor" } } }),
    ["CNI_IPAM_MISMATCH"],
  ],
  [
    "with another cloud's plugin",
    installation({ cni: { type: "AzureVNET" } }),
    ["CNI_WRONG_PLATFORM"],
    { kind: "eks" },
  ],
  [
    "with a pool another plugin cannot have",
    network(
      { ipPools: [{ cidr: "10.0.0.0/16", encapsulation: "VXLAN", nodeSelector: "has(a)" }] },
      { cni: { type: "AmazonVPC" } },
    ),
    ["POOL_NEEDS_OWN_CNI", "POOL_NEEDS_OWN_CNI"],
  ],
  [
    "with overrides of what the operator sets",
    installation({
      nodeDaemonSet: {
        metadata: { labels: { "k8s-app": "x", "bad key": "x", team: "network" } },
        spec: { template: { metadata: { annotations: { "hash.operator.vendor.io/x": "y" } } } },
      },
      kubeControllersDeployment: { spec: { template: { spec: { nodeSelector: { "kubernetes.io/os": "windows" } } } } },
    }),
    ["LABEL_MALFORMED", "OVERRIDE_RESERVED", "OVERRIDE_RESERVED", "OVERRIDE_RESERVED"],
  ],
  [
    "with two ways to find addresses",
    network({ nodeAddressAutodetectionV4: { firstFound: true, cidrs: ["10.0.0.0"] } }),
    ["ADDRESS_METHODS", "CIDR_MALFORMED"],
  ],
  [
    "with components on Windows",
    installation({ controlPlaneNodeSelector: { "kubernetes.io/os": "windows" } }),
    ["CONTROL_PLANE_OS"],
  ],
  ["with a pool that is none", pools({ cidr: "ten" }), ["POOL_CIDR_MALFORMED"]],
  ["with a pool with host bits", pools({ cidr: "10.0.0.1/16" }), ["POOL_CIDR_UNMASKED"]],
  ["with a link-local pool", pools({ cidr: "169.254.0.0/16" }), ["POOL_CIDR_LINK_LOCAL"]],
  ["with blocks of the wrong family", pools({ cidr: "fd00::/64", blockSize: 26 }), ["POOL_BLOCK_SIZE"]],
  ["with a pool smaller than a block", pools({ cidr: "10.0.0.0/28" }), ["POOL_TOO_SMALL"]],
  ["with pools that overlap", pools({ cidr: "10.0.0.0/8" }, { cidr: "10.1.0.0/16" }), ["POOLS_OVERLAP"]],
  [
    "with the same pool twice",
    pools({ cidr: "10.0.0.0/8" }, { cidr: "10.0.0.0/8" }),
    ["DUPLICATE_ITEM", "POOLS_OVERLAP"],
  ],
  [
    "with two pools of one name",
    pools({ cidr: "10.0.0.0/16", name: "a" }, { cidr: "10.1.0.0/16", name: "a" }),
    ["POOL_NAME_TWICE"],
  ],
  ["with IPIP for IPv6", pools({ cidr: "fd00::/64", encapsulation: "IPIP" }), ["POOL_IPIP_IPV6"]],
  ["with a pool elsewhere", pools({ cidr: "10.0.0.0/16" }), ["POOL_OUTSIDE_CLUSTER"], { podCidrs: ["10.244.0.0/16"] }],
  [
    "with a load balancer's pool that has everything",
    pools({
      cidr: "10.0.0.0/16",
      allowedUses: ["LoadBalancer", "Tunnel"],
      encapsulation: "VXLAN",
      nodeSelector: "has(a)",
    }),
    ["POOL_LOAD_BALANCER", "POOL_LOAD_BALANCER", "POOL_LOAD_BALANCER"],
  ],
  [
    "with everything wrong at once",
    { ...bpf({ ipPools: [{ cidr: "10.0.0.1/16", encapsulation: "IPIP" }], mtu: "x" }), metadata: { name: "x" } },
    ["EBPF_IPIP_POOL", "EBPF_NEEDS_KUBE_DATASTORE", "NAME_NOT_DEFAULT", "POOL_CIDR_UNMASKED", "WRONG_TYPE"],
    { datastore: "etcd" },
  ],
];

const dataplane = (spec: object, name = "default") => v3("DataplaneConfiguration", name, spec);
const immutableNodes = { nodes: [node({ osImage: "Flatcar Container Linux 3815" })] };

const CONFIGURATIONS: Row[] = [
  ["for one node", dataplane({ bpfServiceProxyIptablesCleanupEnabled: false }, "node.n1"), []],
  ["in the stored group", { ...dataplane({}), apiVersion: "crd.vendor.io/v1" }, []],
  ["under a name nobody reads", dataplane({}, "main"), ["DATAPLANE_NAME"]],
  ["in the specification's spelling", dataplane({ CgroupV2Path: "/run/cgroup" }), [], immutableNodes],
  ["in both spellings", dataplane({ CgroupV2Path: "/run/a", cgroupV2Path: "/run/a" }), ["CGROUP_PATH_TWICE"]],
  ["with a read-only path", dataplane({ cgroupV2Path: "/etc/cg" }), ["CGROUP_PATH_NOT_WRITABLE"], immutableNodes],
  ["with no pattern", dataplane({ bpfDataIfacePattern: "*" }), ["PATTERN_NOT_REGEX"]],
  ["with a bad address", dataplane({ natOutgoingAddress: "1.2.3" }), ["ADDRESS_MALFORMED"]],
  [
    "with fields that nothing acts on",
    dataplane({ nodePortRanges: ["200:100"], bpfPSNATPorts: "9:8" }),
    ["FIELD_REFUSED", "FIELD_REFUSED"],
  ],
  ["with a value that is not possible", dataplane({ floatingIPs: "Enabled" }), ["VALUE_WITHOUT_EFFECT"]],
  [
    "that fights with the proxy",
    dataplane({ bpfEnabled: true }),
    ["SERVICE_PROXY_CONFLICT"],
    { kind: "aks", serviceProxyMode: "iptables" },
  ],
  [
    "that leaves the proxy alone",
    dataplane({ bpfEnabled: true, bpfServiceProxyIptablesCleanupEnabled: false }),
    [],
    { kind: "aks", serviceProxyMode: "iptables" },
  ],
  [
    "of the controllers, with two templates alike",
    v3("KubeControllersConfiguration", "default", {
      controllers: {
        node: { hostEndpoint: { autoCreate: "Enabled", templates: [{ generateName: "a" }, { generateName: "a" }] } },
      },
    }),
    ["HOST_ENDPOINT_TEMPLATE_TWICE"],
  ],
  [
    "of the controllers, not default and not Enabled",
    v3("KubeControllersConfiguration", "x", { controllers: { node: { hostEndpoint: { autoCreate: "enabled" } } } }),
    ["NAME_NOT_DEFAULT", "VALUE_NOT_ALLOWED"],
  ],
];

const gnp = (spec: object, name = "a") => v3("GlobalNetworkPolicy", name, spec);
const rule = (fields: object) => gnp({ ingress: [{ action: "Allow", ...fields }] });

const POLICIES: Row[] = [
  ["in its tier", gnp({ tier: "security" }, "security.a"), []],
  ["named for another tier", gnp({ tier: "default" }, "security.a"), ["POLICY_NAME"]],
  ["with doNotTrack", gnp({ doNotTrack: true, applyOnForward: true }), ["VALUE_WITHOUT_EFFECT"]],
  ["without doNotTrack, which says so", gnp({ doNotTrack: false }), []],
  ["with preDNAT alone", gnp({ preDNAT: true }), ["POLICY_NEEDS_FORWARD"]],
  [
    "with preDNAT and egress",
    gnp({ preDNAT: true, applyOnForward: true, types: ["Egress"] }),
    ["POLICY_PRE_DNAT_EGRESS"],
  ],
  ["with a protocol that is none", rule({ protocol: "tcp" }), ["RULE_PROTOCOL_UNKNOWN"]],
  ["with ports of no protocol", rule({ destination: { ports: [80] } }), ["RULE_PORTS_NEED_PROTOCOL"]],
  ["with port 0", rule({ protocol: "TCP", destination: { ports: [0] } }), ["RULE_PORT_MALFORMED"]],
  ["with ICMP fields for TCP", rule({ protocol: "TCP", icmp: { type: 8 } }), ["RULE_ICMP_PROTOCOL"]],
  ["with an ICMP code alone", rule({ protocol: "ICMP", icmp: { code: 1 } }), ["RULE_ICMP_CODE"]],
  [
    "with both families",
    rule({ source: { nets: ["10.0.0.0/8"] }, destination: { nets: ["fd00::/8"] } }),
    ["RULE_FAMILY_MIXED"],
  ],
  ["without every address", rule({ source: { notNets: ["0.0.0.0/0"] } }), ["RULE_NOT_NETS_EVERYTHING"]],
  ["with HTTP denied", gnp({ ingress: [{ action: "Deny", http: { methods: ["GET"] } }] }), ["RULE_HTTP"]],
  [
    "with a service as destination of ingress",
    rule({ destination: { services: { name: "a", namespace: "b" } } }),
    ["RULE_SERVICE_MATCH"],
  ],
  ["with global() in its selector", gnp({ selector: "global()" }), ["SELECTOR_GLOBAL"]],
  ["with a label called global() in quotes", gnp({ selector: "a == 'global()'" }), []],
];

const REST: Row[] = [
  ["an endpoint without interface", v3("HostEndpoint", "a", { node: "n1" }), ["HOST_ENDPOINT_NO_INTERFACE"]],
  [
    "an endpoint with a long interface",
    v3("HostEndpoint", "a", { node: "n1", interfaceName: "interfaceTooLong" }),
    ["INTERFACE_NAME_MALFORMED"],
  ],
  [
    "an endpoint named like an automatic one",
    v3("HostEndpoint", "n1-auto-hep", { node: "n1", interfaceName: "*" }),
    ["HOST_ENDPOINT_RESERVED_NAME"],
  ],
  [
    "an automatic endpoint",
    v3(
      "HostEndpoint",
      "n1-auto-hep",
      { node: "n1", interfaceName: "*" },
      { labels: { "vendor.io/created-by": "vendor-kube-controllers" } },
    ),
    [],
  ],
  [
    "a pool with two overlays",
    v3("IPPool", "a", { cidr: "10.0.0.0/16", ipipMode: "Always", vxlanMode: "Always" }),
    ["POOL_TWO_OVERLAYS"],
  ],
  [
    "a tunnel pool for namespaces",
    v3("IPPool", "a", { cidr: "10.0.0.0/16", allowedUses: ["Tunnel"], namespaceSelector: "has(a)" }),
    ["POOL_TUNNEL_NAMESPACES"],
  ],
  ["a pool without a prefix", v3("IPPool", "a", {}), ["FIELD_MISSING"]],
  ["a BGP configuration of a node", v3("BGPConfiguration", "node.n1", { asNumber: 64512 }), []],
  ["a BGP configuration nobody reads", v3("BGPConfiguration", "mine", {}), ["BGP_CONFIGURATION_NAME"]],
  [
    "a BGP configuration with bad values",
    v3("BGPConfiguration", "default", {
      serviceClusterIPs: [{ cidr: "10.0.0.1" }],
      communities: [{ name: "a", value: "70000:1" }],
      prefixAdvertisements: [{ cidr: "10.0.0.0/8", communities: ["a", "b"] }],
      ignoredInterfaces: ['"'],
    }),
    ["CIDR_MALFORMED", "BGP_COMMUNITY", "BGP_COMMUNITY", "BGP_INTERFACE"],
  ],
  [
    "a BGP configuration of peering with workloads",
    v3("BGPConfiguration", "default", { localWorkloadPeeringIPV4: "10.0.0.1" }),
    ["UNKNOWN_FIELD"],
  ],
  ["a BGP peer", v3("BGPPeer", "a", { peerIP: "[fd00::1]:1790", asNumber: 65001 }), []],
  ["a BGP peer of nobody", v3("BGPPeer", "a", {}), ["BGP_PEER_END"]],
  ["a BGP peer without AS number", v3("BGPPeer", "a", { peerIP: "10.0.0.1" }), ["BGP_PEER_END"]],
  ["a BGP peer at the link", v3("BGPPeer", "a", { peerIP: "fe80::1", asNumber: 65001 }), ["BGP_PEER_ADDRESS"]],
  [
    "a BGP peer that contradicts itself",
    v3("BGPPeer", "a", {
      ...{ peerIP: "10.0.0.1", asNumber: 65001, node: "n1", nodeSelector: "all()" },
      ...{ reachableBy: "fd00::1", keepOriginalNextHop: true, nextHopMode: "Self" },
    }),
    ["BGP_PEER_NODES", "BGP_PEER_FAMILIES", "BGP_NEXT_HOP"],
  ],
  [
    "a BGP filter",
    v3("BGPFilter", "a", {
      importV4: [{ action: "Accept", cidr: "10.0.0.0/8", matchOperator: "In", prefixLength: { min: 24, max: 28 } }],
    }),
    [],
  ],
  [
    "a BGP filter with rules that mean nothing",
    v3("BGPFilter", "a", {
      importV4: [
        { action: "Accept", cidr: "fd00::/8", matchOperator: "In" },
        { action: "Accept", cidr: "10.0.0.0/8" },
        { action: "Accept", cidr: "10.0.0.0/8", matchOperator: "Equal", prefixLength: { min: 24 } },
        { action: "Accept", cidr: "10.0.0.0/8", matchOperator: "In", prefixLength: { min: 24, max: 20 } },
      ],
    }),
    ["BGP_RULE", "BGP_RULE", "BGP_RULE", "RANGE_BACKWARDS"],
  ],
  ["the default tier moved", v3("Tier", "default", { order: 10 }), ["TIER_ORDER_FIXED"]],
  ["a tier with a dot", v3("Tier", "a.b", {}), ["NAME_MALFORMED"]],
  [
    "a set with a reserved label",
    v3("GlobalNetworkSet", "a", { nets: ["10.0.0.1"] }, { labels: { "vendor.io/namespace": "x" } }),
    ["LABEL_RESERVED"],
  ],
  ["a profile with a bad label", v3("Profile", "a", { labelsToApply: { "a!": "b" } }), ["LABEL_MALFORMED"]],
  [
    "an API server that is not default",
    { apiVersion: OPERATOR, kind: "APIServer", metadata: { name: "x" }, spec: {} },
    ["NAME_NOT_DEFAULT"],
  ],
  [
    "an API server with another selector",
    {
      ...{ apiVersion: OPERATOR, kind: "APIServer", metadata: { name: "default" } },
      spec: { apiServerDeployment: { spec: { template: { metadata: { labels: { "k8s-app": "x" } } } } } },
    },
    ["OVERRIDE_RESERVED"],
  ],
  ["flow logs", { apiVersion: OPERATOR, kind: "FlowLogs", metadata: { name: "default" }, spec: {} }, []],
  ["something of no kind", { apiVersion: V3, kind: "Installation", metadata: { name: "default" } }, ["UNKNOWN_KIND"]],
  [
    "an endpoint map in the wrong place",
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a", namespace: "vendor-operator" },
      data: { ORCHESTRATOR_SERVICE_HOST: "a.example", ORCHESTRATOR_SERVICE_PORT: "443" },
    },
    ["ENDPOINT_MAP_MISPLACED"],
  ],
];

describe.each([
  ["an installation", INSTALLATIONS],
  ["a configuration", CONFIGURATIONS],
  ["a policy", POLICIES],
  ["also", REST],
])("%s", (_group, rows) => {
  it.each(rows)("%s", (_title, object, expected, facts) => {
    const problems = validateObject(object, facts);
    expect(problems.map((problem) => problem.code).sort()).toEqual([...expected].sort());
  });
});

describe("every problem", () => {
  const all = [...INSTALLATIONS, ...CONFIGURATIONS, ...POLICIES, ...REST].flatMap(([, object, , facts]) =>
    validateObject(object, facts),
  );

  it("is one sentence with a fix, at a place, under a code that explain knows", () => {
    for (const { code, path, message, fix } of all) {
      expect(EXPLANATIONS, code).toHaveProperty(code);
      expect(path, code).not.toBe("");
      expect(message, code).toMatch(/^[^\n]{8,}\.$/);
      expect(fix, code).toMatch(/[.?]$|^(kubectl|vendorctl) /);
    }
  });

  it("says what was probably meant", () => {
    expect(validateObject(network({ linuxDataPlane: "BPF" }))).toEqual([
      {
        code: "UNKNOWN_FIELD",
        path: "spec.vendorNetwork.linuxDataPlane",
        message: "spec.vendorNetwork has no field linuxDataPlane.",
        fix: "Did you mean linuxDataplane?",
      },
    ]);
    expect(validateObject(network({ linuxDataplane: "bpf" }))[0]).toMatchObject({
      message: 'spec.vendorNetwork.linuxDataplane must be BPF or Nftables, not "bpf".',
      fix: "Did you mean BPF?",
    });
  });
});

it("whatever is thrown at it, validation answers and does not throw", () => {
  const kinds = RESOURCES.map((resource) => placesOf(resource, vendorNames).served);
  const fields = new Set<string>(["spec", "metadata"]);
  for (const { spec } of RESOURCES) for (const name of Object.keys(spec.properties ?? {})) fields.add(name);
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(null, true, 0, 1.5, "", "a", "10.0.0.0/8", [], {}),
      fc.array(tie("any"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...fields, "cidr", "action", "source", "nets", "ports"), tie("any"), {
        maxKeys: 4,
      }),
    ),
  })).any;
  fc.assert(
    fc.property(fc.constantFrom(...kinds), value, value, ({ group, version, kind }, spec, metadata) => {
      const object = { apiVersion: `${group}/${version}`, kind, metadata, spec } as unknown as KubeObject;
      expect(Array.isArray(validateObject(object))).toBe(true);
    }),
    { numRuns: 500 },
  );
});
