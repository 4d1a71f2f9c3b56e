import { acting, installation, parked, type Row, running, upgrading } from "./checked-clusters.ts";
import { type Differently, node } from "./observed.ts";

export const PROXY_ROWS: readonly Row[] = [
  {
    code: "SERVICE_PROXY_IPVS",
    for: "switch",
    as: "fail",
    wrong: { proxy: { mode: "ipvs", modeEvidence: "mode: ipvs in the config map kube-proxy" } },
    names: "ipvs",
  },
  {
    code: "SERVICE_PROXY_KEPT_BY_OTHERS",
    for: "switch",
    as: "warn",
    wrong: { proxy: { owner: { who: "Argo CD (net)", evidence: "a mark", how: "put it into the source" } } },
    names: "Argo CD",
  },
  {
    code: "SERVICE_PROXY_OF_CLUSTER_TOOL",
    for: "switch",
    as: "warn",
    wrong: { kind: { detected: "iac" } },
    fine: { kind: { detected: "iac" }, proxy: { daemonSet: undefined } },
    names: "kube-proxy",
  },
  {
    code: "SERVICE_PROXY_STAYS",
    for: "install",
    as: "warn",
    wrong: { kind: { detected: "mke" } },
    fine: { kind: { detected: "mke" }, proxy: { daemonSet: undefined } },
    names: "--kube-proxy-mode=disabled",
  },
  {
    code: "SERVICE_PROXY_CONFLICT",
    for: "running",
    as: "fail",
    wrong: { service: acting() },
    fine: { service: acting({ bpfServiceProxyIptablesCleanupEnabled: false }) },
    names: "kube-proxy runs",
  },
  {
    code: "SERVICE_PROXY_RULES_KEPT",
    for: "running",
    as: "warn",
    like: { proxy: parked },
    wrong: { service: acting({ bpfServiceProxyIptablesCleanupEnabled: false }) },
    fine: { service: acting() },
    names: "bpfServiceProxyIptablesCleanupEnabled",
  },
  {
    code: "SERVICE_PROXY_HEALTH_PORT",
    for: "running",
    as: "warn",
    wrong: { service: acting({ bpfServiceProxyHealthzPort: 10256 }) },
    fine: { service: acting({ bpfServiceProxyHealthzPort: 10256 }), proxy: parked },
    names: "10256",
  },
  {
    code: "SERVICE_PROXY_PARKED_WITHOUT_EBPF",
    for: "running",
    as: "fail",
    like: { proxy: parked },
    wrong: { service: running() },
    fine: { service: acting() },
    names: "by-hand",
  },
  {
    code: "SERVICE_PROXY_NOT_READY",
    for: "running",
    as: "warn",
    wrong: { proxy: { pods: { wanted: 3, ready: 2 } } },
    names: "2 of 3",
  },
];

const inInstallation = (code: string, spec: object, fine: object, names: string, like: Differently = {}): Row => ({
  code,
  for: "running",
  as: "fail",
  like,
  wrong: { service: running(spec) },
  fine: { service: running(fine) },
  names,
});
const bottlerocket = { kind: { detected: "eks" }, nodes: [node("b", { osImage: "Bottlerocket OS 1.20.0" })] } as const;
const flexible = (flexVolumePath?: string) => ({ vendorNetwork: { ...(flexVolumePath ? { flexVolumePath } : {}) } });
const POOL = "10.244.0.0/16";

export const INSTALLATION_ROWS: readonly Row[] = [
  {
    code: "NOT_INSTALLED",
    for: "upgrade",
    as: "fail",
    wrong: {},
    fine: { service: running() },
    names: "Installation",
  },
  { code: "ALREADY_INSTALLED", for: "install", as: "fail", wrong: upgrading("v3.27.5"), names: "v3.27.5" },
  inInstallation("FLEX_VOLUME_PATH_PLATFORM", flexible("/x"), flexible(), "aks", { kind: { detected: "aks" } }),
  inInstallation("FLEX_VOLUME_PATH_VALUE", flexible("/x"), flexible("/var/lib/kubelet/plugins"), "/x", bottlerocket),
  inInstallation(
    "FLEX_VOLUME_PATH_MISSING",
    flexible(),
    flexible("/var/lib/kubelet/plugins"),
    "Bottlerocket",
    bottlerocket,
  ),
  inInstallation("CLUSTER_KIND_MISMATCH", { clusterKind: "eks" }, {}, "aks", { kind: { detected: "aks" } }),
  inInstallation(
    "BGP_NEEDS_OWN_POOLS",
    { cni: { type: "AmazonVPC" }, vendorNetwork: { bgp: "Enabled" } },
    { vendorNetwork: { bgp: "Enabled" } },
    "this CNI plugin does not use",
  ),
  inInstallation("CNI_IPAM_MISMATCH", { cni: { type: "Vendor", ipam: { type: "AmazonVPC" } } }, {}, "AmazonVPC"),
  inInstallation("CNI_WRONG_PLATFORM", { cni: { type: "AzureVNET" } }, {}, "aks", { kind: { detected: "eks" } }),
  inInstallation(
    "POOL_NEEDS_OWN_CNI",
    {
      cni: { type: "Vendor", ipam: { type: "HostLocal" } },
      vendorNetwork: { ipPools: [{ cidr: POOL, encapsulation: "VXLAN" }] },
    },
    { vendorNetwork: { ipPools: [{ cidr: POOL, encapsulation: "VXLAN" }] } },
    POOL,
  ),
  inInstallation(
    "ADDRESS_METHODS",
    { vendorNetwork: { nodeAddressAutodetectionV4: { firstFound: true, interface: "eth0" } } },
    { vendorNetwork: { nodeAddressAutodetectionV4: { firstFound: true } } },
    "interface",
  ),
  inInstallation(
    "OVERRIDE_RESERVED",
    { nodeDaemonSet: { metadata: { labels: { "k8s-app": "mine" } } } },
    {},
    "k8s-app",
  ),
  inInstallation("CONTROL_PLANE_OS", { controlPlaneNodeSelector: { "kubernetes.io/os": "windows" } }, {}, "windows"),
  {
    code: "EBPF_HOST_PORTS_SET",
    for: "running",
    as: "fail",
    wrong: {
      service: { ...acting(), installation: installation({ vendorNetwork: { linuxDataplane: "BPF", hostPorts: {} } }) },
    },
    fine: { service: acting() },
    names: "hostPorts",
  },
  {
    code: "OPERATOR_MISSING",
    for: "running",
    as: "fail",
    wrong: { service: { ...running(), operator: undefined } },
    fine: { service: running() },
    names: "vendor-operator",
  },
];
