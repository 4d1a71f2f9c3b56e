import { acting, agent, dataplane, type Row, running, unsupported } from "./checked-clusters.ts";
import { node } from "./observed.ts";

const VERIFIED = { verifiedSince: "2026-01-31T12:00:00Z", losses: [] };

export const PLATFORM_ROWS: readonly Row[] = [
  {
    code: "EBPF_CLUSTER_KIND",
    for: "install",
    as: "fail",
    wrong: { nodes: [node("n", { labels: { "cloud.google.com/gke-nodepool": "a" } })] },
    names: "node n",
  },
  {
    code: "EBPF_KERNEL_TOO_OLD",
    for: "install",
    as: "fail",
    wrong: { nodes: [node("fine"), node("old", { osImage: "Debian GNU/Linux 9", kernelVersion: "4.9.0-19-amd64" })] },
    names: "node old",
  },
  {
    code: "EBPF_ARCHITECTURE",
    for: "install",
    as: "fail",
    wrong: { nodes: [node("big", { architecture: "s390x" })] },
    names: "s390x",
  },
  { code: "EBPF_MIXED_CLUSTER", for: "switch", as: "fail", wrong: unsupported("windows", "Node win"), names: "win" },
  {
    code: "EBPF_NEEDS_KUBE_DATASTORE",
    for: "switch",
    as: "fail",
    wrong: { service: { method: "manifest", datastore: "etcd" } },
    names: "vendor-config",
  },
  {
    code: "CGROUP_PATH_NOT_WRITABLE",
    for: "install",
    as: "fail",
    like: { nodes: [node("flat", { osImage: "Flatcar Container Linux 3815.2.0" })] },
    wrong: { service: { dataplaneConfiguration: dataplane({ cgroupV2Path: "/usr/cgroup" }) } },
    names: "node flat",
  },
  {
    code: "EBPF_FLOATING_IPS",
    for: "switch",
    as: "fail",
    wrong: unsupported("floating-ip", "DataplaneConfiguration default"),
    names: "default",
  },
  { code: "EBPF_SCTP", for: "switch", as: "fail", wrong: unsupported("sctp", "Service shop/sip"), names: "shop/sip" },
  {
    code: "EBPF_LOG_RULE",
    for: "switch",
    as: "warn",
    wrong: unsupported("log-rule", "NetworkPolicy shop/audit"),
    names: "shop/audit",
  },
  {
    code: "EBPF_VLAN",
    for: "switch",
    as: "fail",
    wrong: unsupported("vlan", "HostEndpoint a"),
    names: "HostEndpoint a",
  },
  {
    code: "FOREIGN_NETWORK_PLUGIN",
    for: "install",
    as: "fail",
    wrong: unsupported("foreign-cni", "DaemonSet kube-system/cilium"),
    names: "cilium",
  },
  {
    code: "AGENT_PROGRAMS_REFUSED",
    for: "switch",
    as: "fail",
    wrong: {
      service: {
        ...running(),
        agents: [agent({}, { programs: { refused: { code: "EbpfProgramsRefused", why: "no BTF" } } })],
      },
    },
    fine: { service: { ...running(), agents: [agent({}, { programs: "loads" })] } },
    names: "no BTF",
  },
];

export const NETWORK_ROWS: readonly Row[] = [
  { code: "EBPF_IPIP_POOL", for: "switch", as: "fail", wrong: unsupported("ipip", "IPPool old"), names: "IPPool old" },
  {
    code: "VXLAN_PORT_TAKEN",
    for: "install",
    as: "warn",
    like: {
      kind: { detected: "mke" },
      nodes: [node("m", { labels: { "com.docker.ucp.orchestrator.swarm": "true" } })],
    },
    wrong: {},
    fine: { service: { dataplaneConfiguration: dataplane({ vxlanPort: 4799 }) } },
    names: "4789",
  },
  {
    code: "VXLAN_BETWEEN_NODES",
    for: "running",
    as: "warn",
    wrong: {
      service: {
        ...acting(),
        agents: [
          agent({}, { overlay: VERIFIED }),
          agent({ node: "worker-2", pod: "vendor-node-y" }, { overlay: { ...VERIFIED, verifiedSince: undefined } }),
        ],
      },
    },
    fine: { service: { ...acting(), agents: [agent({}, { overlay: VERIFIED })] } },
    names: "worker-2",
  },
];
