/**
 * Every identifier that would carry a brand. `vendorNames` are ours, the specification's words letter for letter;
 * `calicoNames` are those of the public system the specification describes. Procedures take a `Names` as input,
 * so they work on clusters of either kind; operator and agent speak `vendorNames` only.
 */
export interface Names {
  dialect: "vendor" | "calico";
  groups: Groups;
  kinds: Record<Noun, KindNames>;
  /** The name every singleton resource has. */
  singleton: "default";
  namespaces: { operator: string; system: string; orchestratorSystem: string; apiServerBeforeV331: string };
  /** Workloads by role. All live in `namespaces.system`, but for the operator itself. */
  workloads: Record<
    "operator" | "node" | "overlayNode" | "kubeControllers" | "typha" | "apiServer" | "flowLogs" | "flowUI",
    string
  >;
  /** Value of `Installation.spec.variant` for the open-source edition. */
  variant: string;
  /** Values of `linuxDataplane`: the one that selects eBPF, and those that select the standard pipeline, ours first. */
  dataplanes: { ebpf: "BPF"; standard: readonly [string, ...string[]] };
  endpointMap: { name: string; hostKey: string; portKey: string };
  fields: FieldNames;
  labels: {
    createdBy: { key: string; value: string };
    /** Put on the service proxy's pods as a node selector that matches no node. */
    parkServiceProxy: { key: string; value: string };
    managedParkServiceProxy: { key: string; value: string };
    nodeMigration: string;
  };
  annotations: { ebpfEnabled: string; storedMetadata: string; floatingIPs: string; addressAssignment: string };
  finalizers: Record<"installation" | "apiServer" | "flowLogs" | "flowUI" | "cniProtector", string>;
  /** Names of the status resources, one per component. */
  statuses: Record<"network" | "ipPools" | "apiServer" | "flowLogs" | "flowUI" | "serviceProxy", string>;
  hostEndpoints: { suffix: string; allowAllProfile: string; temporaryUpgradePolicy: string };
  /** The orchestrator's own proxy: named by the orchestrator, so the same in both dialects. */
  serviceProxy: { daemonSet: string; configMap: string };
  chart: { repository: string; name: string; release: string };
  manifests: Manifests;
  /** READY column of node pods after an upgrade with plain manifests. */
  ready: { apiDatastore: string; etcdDatastore: string; overlay: string };
  paths: { cgroupV2: string; flexVolume: string };
  tool: string;
}

/** What vendor-flow-logs serves. There is one, whatever names the rest of a cluster has. */
export const FLOW_LOGS_API = { group: "flows.vendor.io", version: "v1" } as const;
/** Common name of the certificates by which programs of others read and send flows, on the port of agents. */
export const FLOW_LOGS_CLIENT = "vendor-flow-client";

interface Groups {
  /** Operator resources. */
  operator: GroupVersion;
  /** v3 resources as they are stored, as CRDs. */
  stored: GroupVersion;
  /** v3 resources as people use them, served by the aggregated API. */
  served: GroupVersion;
}

interface GroupVersion {
  group: string;
  version: string;
}

interface KindNames {
  kind: string;
  plural: string;
  shortNames: readonly string[];
  /** Only where the CRD is called differently from the v3 resource. */
  stored?: { kind: string; plural: string };
}

export type Noun =
  | "installation"
  | "apiServer"
  | "flowLogs"
  | "flowUI"
  | "status"
  | "dataplaneConfiguration"
  | "kubeControllersConfiguration"
  | "hostEndpoint"
  | "networkPolicy"
  | "globalNetworkPolicy"
  | "stagedNetworkPolicy"
  | "stagedGlobalNetworkPolicy"
  | "stagedKubernetesNetworkPolicy"
  | "networkSet"
  | "globalNetworkSet"
  | "tier"
  | "profile"
  | "ipPool"
  | "ipReservation"
  | "bgpConfiguration"
  | "bgpPeer"
  | "bgpFilter"
  | "nodeStatus"
  | "clusterInformation"
  | "ipamBlock"
  | "blockAffinity"
  | "ipamHandle"
  | "ipamConfiguration";

/** Dotted paths of the fields procedures read and patch. */
interface FieldNames {
  linuxDataplane: string;
  hostPorts: string;
  flexVolumePath: string;
  serviceProxyManagement: string;
  iptablesCleanup: string;
  serviceProxyHealthzPort: string;
  ebpfEnabled: string;
  cgroupV2Path: string;
  autoCreateHostEndpoints: string;
  nodeUpdateStrategy: string;
  clusterVersion: string;
  statusVersion: string;
}

interface Manifests {
  operatorCrds: string;
  operator: string;
  customResources: string;
  policyAndNetworking: string;
  policyAndOverlay: string;
  policyOnly: string;
  /** With Typha between the agents and the API server; only the public system publishes it. */
  policyAndNetworkingTypha?: string;
  policyAndNetworkingEtcd: string;
  policyAndOverlayEtcd: string;
  /** Where the injector's config maps are; the file name is made from the mesh version. */
  sidecarInjector: (meshVersion: string) => string;
  /** What the injector's config map is called, in whichever namespace the mesh lives. */
  sidecarInjectorMap: string;
  /** The container the injector adds to pods. */
  sidecarContainer: string;
  /** The mesh's own proxy in the same pod, which asks the sidecar. */
  meshProxyContainer: string;
  configMap: string;
  etcdEndpointsKey: string;
}

/** The orchestrator is Kubernetes in both dialects; the specification only hides its name in identifiers of ours. */
const orchestrator = {
  singleton: "default",
  serviceProxy: { daemonSet: "kube-proxy", configMap: "kube-proxy" },
} as const;

export const vendorNames: Names = {
  ...orchestrator,
  dialect: "vendor",
  groups: {
    operator: { group: "operator.vendor.io", version: "v1" },
    stored: { group: "crd.vendor.io", version: "v1" },
    served: { group: "vendor.io", version: "v3" },
  },
  kinds: {
    installation: { kind: "Installation", plural: "installations", shortNames: [] },
    apiServer: { kind: "APIServer", plural: "apiservers", shortNames: [] },
    flowLogs: { kind: "FlowLogs", plural: "flowlogs", shortNames: [] },
    flowUI: { kind: "FlowUI", plural: "flowuis", shortNames: [] },
    status: { kind: "VendorStatus", plural: "vendorstatuses", shortNames: ["vstatus"] },
    dataplaneConfiguration: {
      kind: "DataplaneConfiguration",
      plural: "dataplaneconfigurations",
      shortNames: ["dpconfig"],
    },
    kubeControllersConfiguration: {
      kind: "KubeControllersConfiguration",
      plural: "kubecontrollersconfigurations",
      shortNames: ["kcconfig"],
    },
    hostEndpoint: { kind: "HostEndpoint", plural: "hostendpoints", shortNames: ["hep"] },
    networkPolicy: { kind: "NetworkPolicy", plural: "networkpolicies", shortNames: ["vnp"] },
    globalNetworkPolicy: { kind: "GlobalNetworkPolicy", plural: "globalnetworkpolicies", shortNames: ["gnp"] },
    stagedNetworkPolicy: { kind: "StagedNetworkPolicy", plural: "stagednetworkpolicies", shortNames: ["snp"] },
    stagedGlobalNetworkPolicy: {
      kind: "StagedGlobalNetworkPolicy",
      plural: "stagedglobalnetworkpolicies",
      shortNames: ["sgnp"],
    },
    stagedKubernetesNetworkPolicy: {
      kind: "StagedKubernetesNetworkPolicy",
      plural: "stagedkubernetesnetworkpolicies",
      shortNames: ["sknp"],
    },
    networkSet: { kind: "NetworkSet", plural: "networksets", shortNames: ["netset"] },
    globalNetworkSet: { kind: "GlobalNetworkSet", plural: "globalnetworksets", shortNames: ["gnetset"] },
    tier: { kind: "Tier", plural: "tiers", shortNames: [] },
    profile: { kind: "Profile", plural: "profiles", shortNames: [] },
    ipPool: { kind: "IPPool", plural: "ippools", shortNames: ["pool"] },
    ipReservation: { kind: "IPReservation", plural: "ipreservations", shortNames: [] },
    bgpConfiguration: { kind: "BGPConfiguration", plural: "bgpconfigurations", shortNames: ["bgpconfig"] },
    bgpPeer: { kind: "BGPPeer", plural: "bgppeers", shortNames: [] },
    bgpFilter: { kind: "BGPFilter", plural: "bgpfilters", shortNames: [] },
    nodeStatus: { kind: "NodeStatus", plural: "nodestatuses", shortNames: [] },
    clusterInformation: { kind: "ClusterInformation", plural: "clusterinformations", shortNames: ["clusterinfo"] },
    ipamBlock: { kind: "IPAMBlock", plural: "ipamblocks", shortNames: [] },
    blockAffinity: { kind: "BlockAffinity", plural: "blockaffinities", shortNames: [] },
    ipamHandle: { kind: "IPAMHandle", plural: "ipamhandles", shortNames: [] },
    ipamConfiguration: { kind: "IPAMConfiguration", plural: "ipamconfigurations", shortNames: ["ipamconfig"] },
  },
  namespaces: {
    operator: "vendor-operator",
    system: "vendor-system",
    orchestratorSystem: "kube-system",
    apiServerBeforeV331: "vendor-apiserver",
  },
  workloads: {
    operator: "vendor-operator",
    node: "vendor-node",
    overlayNode: "vendor-overlay",
    kubeControllers: "vendor-kube-controllers",
    typha: "vendor-typha",
    apiServer: "vendor-apiserver",
    flowLogs: "vendor-flow-logs",
    flowUI: "vendor-flow-ui",
  },
  variant: "OpenSource",
  dataplanes: { ebpf: "BPF", standard: ["Nftables"] },
  endpointMap: {
    name: "orchestrator-services-endpoint",
    hostKey: "ORCHESTRATOR_SERVICE_HOST",
    portKey: "ORCHESTRATOR_SERVICE_PORT",
  },
  fields: {
    linuxDataplane: "spec.vendorNetwork.linuxDataplane",
    hostPorts: "spec.vendorNetwork.hostPorts",
    flexVolumePath: "spec.vendorNetwork.flexVolumePath",
    serviceProxyManagement: "spec.vendorNetwork.serviceProxyManagement",
    iptablesCleanup: "spec.bpfServiceProxyIptablesCleanupEnabled",
    serviceProxyHealthzPort: "spec.bpfServiceProxyHealthzPort",
    ebpfEnabled: "spec.bpfEnabled",
    cgroupV2Path: "spec.cgroupV2Path",
    autoCreateHostEndpoints: "spec.controllers.node.hostEndpoint.autoCreate",
    nodeUpdateStrategy: "spec.nodeUpdateStrategy",
    clusterVersion: "spec.vendorVersion",
    statusVersion: "status.version",
  },
  labels: {
    createdBy: { key: "vendor.io/created-by", value: "vendor-kube-controllers" },
    parkServiceProxy: { key: "non-vendor", value: "true" },
    managedParkServiceProxy: { key: "operator.vendor.io/disable-service-proxy", value: "true" },
    nodeMigration: "vendor.io/operator-node-migration",
  },
  annotations: {
    ebpfEnabled: "operator.vendor.io/bpfEnabled",
    storedMetadata: "vendor.io/metadata",
    floatingIPs: "cni.vendor.io/floatingIPs",
    addressAssignment: "vendor.io/address-assignment",
  },
  finalizers: {
    installation: "operator.vendor.io/installation-controller",
    apiServer: "operator.vendor.io/apiserver-controller",
    flowLogs: "operator.vendor.io/flow-logs-controller",
    flowUI: "operator.vendor.io/flow-ui-controller",
    cniProtector: "vendor.io/cni-protector",
  },
  statuses: {
    network: "network",
    ipPools: "ippools",
    apiServer: "apiserver",
    flowLogs: "flow-logs",
    flowUI: "flow-ui",
    serviceProxy: "service-proxy",
  },
  hostEndpoints: {
    suffix: "-auto-hep",
    allowAllProfile: "vendor-default-allow",
    temporaryUpgradePolicy: "allow-all-upgrade",
  },
  chart: { repository: "vendor", name: "vendor-operator", release: "vendor" },
  manifests: {
    operatorCrds: "operator-crds.yaml",
    operator: "vendor-operator.yaml",
    customResources: "custom-resources.yaml",
    policyAndNetworking: "vendor.yaml",
    policyAndOverlay: "vendor-overlay.yaml",
    policyOnly: "vendor-policy-only.yaml",
    policyAndNetworkingEtcd: "vendor-etcd.yaml",
    policyAndOverlayEtcd: "vendor-overlay-etcd.yaml",
    sidecarInjector: (meshVersion) => `alp/mesh-inject-configmap-${meshVersion}.yaml`,
    sidecarInjectorMap: "mesh-sidecar-injector",
    sidecarContainer: "vendor-policy-sidecar",
    meshProxyContainer: "mesh-proxy",
    configMap: "vendor-config",
    etcdEndpointsKey: "etcd_endpoints",
  },
  ready: { apiDatastore: "2/2", etcdDatastore: "1/2", overlay: "2/2" },
  // The orchestrator's node agent is the kubelet, so the specification's `<node_agent_dir>` is its directory.
  paths: { cgroupV2: "/run/vendor/cgroup", flexVolume: "/var/lib/kubelet/plugins" },
  tool: "vendorctl",
};

export const calicoNames: Names = {
  ...orchestrator,
  dialect: "calico",
  groups: {
    operator: { group: "operator.tigera.io", version: "v1" },
    stored: { group: "crd.projectcalico.org", version: "v1" },
    served: { group: "projectcalico.org", version: "v3" },
  },
  kinds: {
    ...vendorNames.kinds,
    nodeStatus: { kind: "CalicoNodeStatus", plural: "caliconodestatuses", shortNames: [] },
    flowLogs: { kind: "Goldmane", plural: "goldmanes", shortNames: [] },
    flowUI: { kind: "Whisker", plural: "whiskers", shortNames: [] },
    status: { kind: "TigeraStatus", plural: "tigerastatuses", shortNames: [] },
    dataplaneConfiguration: { kind: "FelixConfiguration", plural: "felixconfigurations", shortNames: ["felixconfig"] },
    networkPolicy: { kind: "NetworkPolicy", plural: "networkpolicies", shortNames: ["cnp", "caliconetworkpolicy"] },
    ipamConfiguration: {
      kind: "IPAMConfiguration",
      plural: "ipamconfigurations",
      shortNames: ["ipamconfig"],
      stored: { kind: "IPAMConfig", plural: "ipamconfigs" },
    },
  },
  namespaces: {
    operator: "tigera-operator",
    system: "calico-system",
    orchestratorSystem: "kube-system",
    apiServerBeforeV331: "calico-apiserver",
  },
  workloads: {
    operator: "tigera-operator",
    node: "calico-node",
    overlayNode: "canal",
    kubeControllers: "calico-kube-controllers",
    typha: "calico-typha",
    apiServer: "calico-apiserver",
    flowLogs: "goldmane",
    flowUI: "whisker",
  },
  variant: "Calico",
  dataplanes: { ebpf: "BPF", standard: ["Iptables", "Nftables", "VPP"] },
  endpointMap: {
    name: "kubernetes-services-endpoint",
    hostKey: "KUBERNETES_SERVICE_HOST",
    portKey: "KUBERNETES_SERVICE_PORT",
  },
  fields: {
    linuxDataplane: "spec.calicoNetwork.linuxDataplane",
    hostPorts: "spec.calicoNetwork.hostPorts",
    flexVolumePath: "spec.flexVolumePath",
    serviceProxyManagement: "spec.calicoNetwork.kubeProxyManagement",
    iptablesCleanup: "spec.bpfKubeProxyIptablesCleanupEnabled",
    serviceProxyHealthzPort: "spec.bpfKubeProxyHealthzPort",
    ebpfEnabled: "spec.bpfEnabled",
    cgroupV2Path: "spec.cgroupV2Path",
    autoCreateHostEndpoints: "spec.controllers.node.hostEndpoint.autoCreate",
    nodeUpdateStrategy: "spec.nodeUpdateStrategy",
    clusterVersion: "spec.calicoVersion",
    statusVersion: "status.calicoVersion",
  },
  labels: {
    createdBy: { key: "projectcalico.org/created-by", value: "calico-kube-controllers" },
    parkServiceProxy: { key: "non-calico", value: "true" },
    managedParkServiceProxy: { key: "operator.tigera.io/disable-kube-proxy", value: "true" },
    nodeMigration: "projectcalico.org/operator-node-migration",
  },
  annotations: {
    ebpfEnabled: "operator.tigera.io/bpfEnabled",
    storedMetadata: "projectcalico.org/metadata",
    floatingIPs: "cni.projectcalico.org/floatingIPs",
    addressAssignment: "vendor.io/address-assignment",
  },
  finalizers: {
    installation: "operator.tigera.io/installation-controller",
    apiServer: "operator.tigera.io/apiserver-controller",
    flowLogs: "operator.tigera.io/goldmane-controller",
    flowUI: "operator.tigera.io/whisker-controller",
    cniProtector: "tigera.io/cni-protector",
  },
  statuses: {
    network: "calico",
    ipPools: "ippools",
    apiServer: "apiserver",
    flowLogs: "goldmane",
    flowUI: "whisker",
    serviceProxy: "kubeproxy-monitor",
  },
  hostEndpoints: {
    suffix: "-auto-hep",
    allowAllProfile: "projectcalico-default-allow",
    temporaryUpgradePolicy: "allow-all-upgrade",
  },
  chart: { repository: "projectcalico", name: "tigera-operator", release: "calico" },
  manifests: {
    operatorCrds: "operator-crds.yaml",
    operator: "tigera-operator.yaml",
    customResources: "custom-resources.yaml",
    policyAndNetworking: "calico.yaml",
    policyAndNetworkingTypha: "calico-typha.yaml",
    policyAndOverlay: "canal.yaml",
    policyOnly: "calico-policy-only.yaml",
    policyAndNetworkingEtcd: "calico-etcd.yaml",
    policyAndOverlayEtcd: "canal-etcd.yaml",
    sidecarInjector: (meshVersion) => `alp/istio-inject-configmap-${meshVersion}.yaml`,
    sidecarInjectorMap: "istio-sidecar-injector",
    sidecarContainer: "dikastes",
    meshProxyContainer: "istio-proxy",
    configMap: "calico-config",
    etcdEndpointsKey: "etcd_endpoints",
  },
  // The released manifests run one container per node pod; only the overlay variants run two.
  ready: { apiDatastore: "1/1", etcdDatastore: "1/1", overlay: "2/2" },
  paths: { cgroupV2: "/run/calico/cgroup", flexVolume: "/var/lib/kubelet/plugins" },
  tool: "calicoctl",
};
