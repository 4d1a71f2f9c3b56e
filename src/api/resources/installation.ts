import { vendorNames } from "../names.ts";
import { CLUSTER_KIND_NAMES } from "../tables/cluster-kinds.ts";
import { conditionColumn, conditions, messageColumn } from "./conditions.ts";
import {
  choice,
  flag,
  integer,
  intOrString,
  list,
  listByKey,
  mapOf,
  nullable,
  object,
  opaque,
  port,
  setOf,
  text,
} from "./describe.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";
import { daemonSetOverrides, deploymentOverrides } from "./workload-overrides.ts";

/** Nothing here has a schema default: a default belongs to the version that runs, so it is computed, not stored. */
const ipam = object("How pods get addresses.", {
  type: choice(
    "Who hands out addresses: Vendor is this service, from IP pools; HostLocal too, from the podCIDR of the node, and then the network or an overlay leads to other nodes. The others belong to other CNI plugins.",
    ["Vendor", "HostLocal", "AmazonVPC", "AzureVNET"],
  ),
});

const cni = object("The CNI plugin that connects pods.", {
  type: choice(
    "Which plugin connects pods: Vendor is this service; with the others it only adds policy and services. PointToPoint is any that gives each pod a veth and a route to its address.",
    ["Vendor", "AmazonVPC", "AzureVNET", "GKE", "PointToPoint"],
  ),
  ipam,
  binDir: text("Directory on the node for CNI programs; must be an absolute path.", { pattern: "^/" }),
  confDir: text("Directory on the node for CNI configuration; must be an absolute path.", { pattern: "^/" }),
});

const ipPool = object(
  "One pool of pod addresses to create.",
  {
    name: text("Name of the pool; made from the CIDR where it is left out.", { maxLength: 253 }),
    cidr: text("Prefix the addresses come from, such as 10.244.0.0/16.", { minLength: 3, maxLength: 49 }),
    encapsulation: choice("How packets between nodes are wrapped; eBPF needs VXLAN, VXLANCrossSubnet or None.", [
      "VXLAN",
      "VXLANCrossSubnet",
      "None",
      "IPIP",
      "IPIPCrossSubnet",
    ]),
    blockSize: integer("Prefix length of the blocks nodes get: 20 to 32 for IPv4, 116 to 128 for IPv6.", {
      minimum: 20,
      maximum: 128,
    }),
    natOutgoing: choice("Whether traffic leaving the pools takes the node's address.", ["Enabled", "Disabled"]),
    nodeSelector: text("Which nodes take addresses from this pool; all() is every node.", { minLength: 1 }),
    allowedUses: setOf(
      "What the addresses may be used for.",
      choice("One use.", ["Workload", "Tunnel", "LoadBalancer"]),
      { maxItems: 3 },
    ),
    assignmentMode: choice("Whether pods get addresses from this pool on their own or only when they ask.", [
      "Automatic",
      "Manual",
    ]),
    disableNewAllocations: flag("Stops new addresses from this pool; those in use stay."),
  },
  ["cidr"],
);

const autodetection = (family: string) =>
  object(`How the node's ${family} address is found; at most one method.`, {
    firstFound: flag("Takes the first usable address of the first usable interface; only true is possible."),
    orchestrator: choice("Takes the address the orchestrator reports for the node.", ["NodeInternalIP"]),
    interface: text("Regular expression for the interface to take the address from."),
    skipInterface: text("Regular expression for interfaces to leave out."),
    canReach: text("Takes the address this node would use to reach the given IP or name."),
    cidrs: setOf("Takes an address that lies in one of these prefixes.", text("One prefix.")),
  });

const vendorNetwork = object("Networking of pods, services and policy.", {
  linuxDataplane: choice("The data plane of Linux nodes: BPF is eBPF, Nftables the standard Linux pipeline.", [
    "BPF",
    "Nftables",
  ]),
  hostPorts: nullable(
    object("Ports of pods on their node (hostPort); null with eBPF, which always serves them.", {
      portMapping: choice("Whether hostPort is served on the nftables data plane.", ["Enabled", "Disabled"]),
    }),
  ),
  flexVolumePath: text(
    "Volume plugin directory; only for the Bottlerocket-like node image on the EKS-like service, where it is /var/lib/kubelet/plugins.",
  ),
  ipPools: listByKey("Pools to create and keep; an empty list leaves the pools to others.", ["cidr"], ipPool, {
    maxItems: 25,
  }),
  mtu: integer("MTU of pod interfaces; found from the node's interfaces where it is left out.", {
    minimum: 576,
    maximum: 65535,
  }),
  nodeAddressAutodetectionV4: autodetection("IPv4"),
  nodeAddressAutodetectionV6: autodetection("IPv6"),
  bgp: choice("Whether nodes speak BGP, as BGPConfigurations and BGPPeers say.", ["Enabled", "Disabled"]),
  containerIPForwarding: choice("Whether pods may forward packets.", ["Enabled", "Disabled"]),
  serviceProxyManagement: choice("Whether the operator disables and restores kube-proxy.", ["Enabled", "Disabled"]),
  linuxPolicySetupTimeoutSeconds: integer(
    "How long a new pod waits for its policy before it starts; 0 does not wait.",
    {
      minimum: 0,
    },
  ),
});

const componentResources = listByKey(
  "CPU and memory of the components.",
  ["componentName"],
  object(
    "Resources of one component.",
    {
      componentName: choice("The component.", ["Node", "KubeControllers", "APIServer", "FlowLogs", "FlowUI"]),
      resourceRequirements: object("Requests and limits, as in a pod.", {
        requests: mapOf("What the component asks for.", intOrString("A quantity.")),
        limits: mapOf("What the component may not exceed.", intOrString("A quantity.")),
      }),
    },
    ["componentName", "resourceRequirements"],
  ),
);

const spec = object(
  "What to install.",
  {
    variant: choice("Edition to install.", ["OpenSource"]),
    registry: text("Registry to pull images from instead of the default."),
    imagePath: text("Path of the images in the registry."),
    imagePrefix: text("Text in front of every image name."),
    imagePullSecrets: listByKey(
      "Secrets in the operator's namespace to pull images with.",
      ["name"],
      object("Reference to one secret.", { name: text("Name of the secret.", { minLength: 1 }) }, ["name"]),
    ),
    clusterKind: choice("Kind of cluster, where the operator should not find out by itself.", CLUSTER_KIND_NAMES),
    cni,
    vendorNetwork,
    nodeUpdateStrategy: object("How node pods are replaced in a roll-out.", {
      type: choice(
        "RollingUpdate replaces them node by node. With OnDelete a node keeps its pod until it is deleted: vendorctl upgrade sets it while it replaces them in waves.",
        ["RollingUpdate", "OnDelete"],
      ),
      rollingUpdate: object("Limits of the roll-out.", {
        maxUnavailable: intOrString("Nodes without a running agent at a time, as a number or a percentage."),
      }),
    }),
    controlPlaneReplicas: integer("Copies of each control-plane component.", { minimum: 1 }),
    controlPlaneNodeSelector: mapOf(
      "Labels of the nodes control-plane components run on.",
      text("Value of the label."),
    ),
    controlPlaneTolerations: list("Taints control-plane components tolerate.", opaque("One toleration, as in a pod.")),
    nodeMetricsPort: port("Port on every node for the agent's metrics; none where it is left out."),
    componentResources,
    nodeDaemonSet: daemonSetOverrides,
    kubeControllersDeployment: deploymentOverrides(vendorNames.workloads.kubeControllers),
  },
  ["variant"],
);

export const installation = defineResource({
  noun: "installation",
  api: "operator",
  namespaced: false,
  description: "What the operator installs and keeps; there is one, named default.",
  spec,
  status: object("What is installed.", {
    variant: text("Edition that is installed."),
    version: text("Version that is installed."),
    mtu: integer("MTU in use.", { minimum: 0 }),
    computed: opaque("The specification with every default filled in, as the operator last used it."),
    dataplaneFallback: text(
      "Why the nftables data plane runs though eBPF is the default and nothing was asked for: EndpointMapMissing. eBPF follows when the endpoint map comes.",
    ),
    conditions,
  }),
  columns: [
    {
      name: "Dataplane",
      type: "string",
      jsonPath: ".status.computed.vendorNetwork.linuxDataplane",
      description: "Data plane in use",
    },
    { name: "Version", type: "string", jsonPath: ".status.version", description: "Version that is installed" },
    conditionColumn("Ready", "Whether everything installed works"),
    conditionColumn("Progressing", "Whether a change is being rolled out"),
    conditionColumn("Degraded", "Whether something is wrong"),
    AGE,
    messageColumn("Ready"),
    { name: "Variant", type: "string", jsonPath: ".spec.variant", description: "Edition", priority: 1 },
    { name: "MTU", type: "integer", jsonPath: ".status.mtu", description: "MTU in use", priority: 1 },
  ],
});

export type Installation = ObjectOf<typeof installation>;
export type InstallationSpec = Installation["spec"];
