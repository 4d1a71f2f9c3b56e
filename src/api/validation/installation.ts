import { vendorNames } from "../names.ts";
import type { Installation, InstallationSpec } from "../resources/installation.ts";
import { CLUSTER_KIND_NAMES, CLUSTER_KINDS, type ClusterKind } from "../tables/cluster-kinds.ts";
import { CNI_PLUGINS, type CniPlugin, cniPlugin } from "../tables/cni-plugins.ts";
import { parseOperatingSystem } from "../tables/operating-system.ts";
import { ebpfPlatformProblems, ebpfProblem } from "./ebpf.ts";
import type { ClusterFacts } from "./facts.ts";
import {
  ipipFamilyProblems,
  loadBalancerProblems,
  type PoolShape,
  poolPlaceProblems,
  poolSetProblems,
  poolShapeProblems,
} from "./pools.ts";
import { type Problem, reporters } from "./problem.ts";
import { netProblems, regexProblems, selectorProblems, singletonProblems } from "./values.ts";
import { OVERRIDE_PROBLEMS, overridesProblems } from "./workload-overrides.ts";

const FLEX_RULE =
  "flexVolumePath: only for the Bottlerocket-like node image on the EKS-like service; the value is <node_agent_dir>/plugins";

export const INSTALLATION_PROBLEMS = {
  FLEX_VOLUME_PATH_PLATFORM: {
    title: "flexVolumePath outside its one platform",
    why: "Everywhere else the default directory is writable, and another one would not be read.",
    fix: "Remove spec.vendorNetwork.flexVolumePath.",
    rule: FLEX_RULE,
  },
  FLEX_VOLUME_PATH_VALUE: {
    title: "flexVolumePath has another value than the one that works",
    why: "Only one directory of that node image is writable and read by the node agent.",
    fix: `Set it to ${vendorNames.paths.flexVolume}.`,
    rule: FLEX_RULE,
  },
  FLEX_VOLUME_PATH_MISSING: {
    title: "flexVolumePath is needed on this node image",
    why: "The default directory is read-only on the Bottlerocket-like image, so node pods would not start.",
    fix: `Set spec.vendorNetwork.flexVolumePath to ${vendorNames.paths.flexVolume}.`,
    rule: FLEX_RULE,
  },
  CLUSTER_KIND_MISMATCH: {
    title: "The installation names another kind of cluster than this one",
    why: "Addresses, kube-proxy and node settings depend on the kind; with the wrong one they fail.",
    fix: "Remove spec.clusterKind, or correct it.",
    rule: "A kind that differs from the one found is refused.",
  },
  CNI_IPAM_MISMATCH: {
    title: "CNI plugin and address management do not go together",
    why: "Each cloud's plugin brings its own addresses; ours takes its own or the node's.",
    fix: "Leave spec.cni.ipam out, or use the matching type.",
    rule: "Vendor goes with Vendor or HostLocal; other plugins with their own.",
  },
  CNI_WRONG_PLATFORM: {
    title: "A cloud's CNI plugin on another kind of cluster",
    why: "The plugin talks to its own cloud and works nowhere else.",
    fix: "Use the plugin of this cluster, or Vendor.",
    rule: "AmazonVPC goes with eks, AzureVNET with aks, and each of the others with plain Kubernetes; there, all do.",
  },
  POOL_NEEDS_OWN_CNI: {
    title: "A pool asks for what only our own CNI plugin does",
    why: "With another plugin or with addresses from the node, packets are not wrapped by this service.",
    fix: "Set the pool's encapsulation to None and its nodeSelector to all().",
    rule: "Other CNI plugins: encapsulation None, all nodes. HostLocal: no VXLAN.",
  },
  BGP_NEEDS_OWN_POOLS: {
    title: "BGP without pools of this service",
    why: "What is announced are the blocks that nodes have of its pools; with another CNI plugin or the nodes' podCIDRs there are none.",
    fix: "Remove spec.vendorNetwork.bgp, or use the Vendor plugin with Vendor address management.",
    rule: "bgp Enabled goes with cni.type Vendor and cni.ipam.type Vendor.",
  },
  ADDRESS_METHODS: {
    title: "More than one method of finding the node's address",
    why: "Two methods may find two addresses, and which one wins would be chance.",
    fix: "Keep one of the methods.",
    rule: "At most one of firstFound, orchestrator, interface, skipInterface, canReach and cidrs.",
  },
  CONTROL_PLANE_OS: {
    title: "Control-plane components on something other than Linux",
    why: "They run on Linux only.",
    fix: "Set kubernetes.io/os to linux, or leave it out.",
    rule: "The operating system label of controlPlaneNodeSelector is linux.",
  },
  ...OVERRIDE_PROBLEMS,
} as const;

const at = reporters(INSTALLATION_PROBLEMS);

type Network = NonNullable<InstallationSpec["vendorNetwork"]>;
type Pool = NonNullable<Network["ipPools"]>[number];
const NETWORK = "spec.vendorNetwork";

/**
 * Everything wrong with an installation, given what is known of its cluster. Only what is written is checked: to check
 * the defaults too, give it the result of `effectiveInstallation`.
 */
export function installationProblems(installation: Installation, facts: ClusterFacts = {}): Problem[] {
  const { spec } = installation;
  const network = spec.vendorNetwork ?? {};
  const kind = spec.clusterKind ?? facts.kind;
  return [
    ...singletonProblems(installation.metadata.name),
    ...kindProblems(spec, facts),
    ...cniProblems(spec, kind),
    ...poolsProblems(spec, facts),
    ...bgpProblems(spec),
    ...(network.linuxDataplane === "BPF" ? ebpfProblems(network, { ...facts, ...(kind ? { kind } : {}) }) : []),
    ...flexVolumeProblems(network.flexVolumePath, kind, facts),
    ...autodetectionProblems(network.nodeAddressAutodetectionV4, `${NETWORK}.nodeAddressAutodetectionV4`),
    ...autodetectionProblems(network.nodeAddressAutodetectionV6, `${NETWORK}.nodeAddressAutodetectionV6`),
    ...controlPlaneProblems(spec.controlPlaneNodeSelector),
    ...overridesProblems(spec.nodeDaemonSet, "spec.nodeDaemonSet"),
    ...overridesProblems(spec.kubeControllersDeployment, "spec.kubeControllersDeployment"),
  ];
}

function kindProblems(spec: InstallationSpec, facts: ClusterFacts): Problem[] {
  if (!spec.clusterKind || !facts.kind || spec.clusterKind === facts.kind) return [];
  const message = `This is a cluster of kind ${facts.kind}, not ${spec.clusterKind}.`;
  return [at.CLUSTER_KIND_MISMATCH("spec.clusterKind", message)];
}

function cniProblems(spec: InstallationSpec, kind: ClusterKind | undefined): Problem[] {
  const type = knownCni(spec);
  const ipam = spec.cni?.ipam?.type;
  const { ipam: allowed, home, interfacePrefix } = cniPlugin(type);
  const problems: Problem[] = [];
  if (ipam !== undefined && !allowed.some((one) => one === ipam)) {
    const message = `The ${type} plugin takes addresses from ${allowed.join(" or ")}, not ${ipam}.`;
    problems.push(at.CNI_IPAM_MISMATCH("spec.cni.ipam.type", message));
  }
  const isElsewhere = kind !== undefined && CLUSTER_KINDS[kind]?.isVendorPlatform && kind !== home;
  if (interfacePrefix !== undefined && isElsewhere) {
    const where = home ?? "plain Kubernetes";
    problems.push(at.CNI_WRONG_PLATFORM("spec.cni.type", `The ${type} plugin works on ${where}, not on ${kind}.`));
  }
  return problems;
}

function bgpProblems(spec: InstallationSpec): Problem[] {
  if (spec.vendorNetwork?.bgp !== "Enabled") return [];
  if (knownCni(spec) === "Vendor" && spec.cni?.ipam?.type !== "HostLocal") return [];
  return [
    at.BGP_NEEDS_OWN_POOLS(`${NETWORK}.bgp`, "BGP announces blocks of pools, which this CNI plugin does not use."),
  ];
}

function poolsProblems(spec: InstallationSpec, facts: ClusterFacts): Problem[] {
  const pools = spec.vendorNetwork?.ipPools ?? [];
  const shapes = pools.map(shapeOf);
  return [
    ...pools.flatMap((pool, index) => poolProblems(pool, shapes[index]!, spec, facts)),
    ...poolSetProblems(shapes.filter((shape) => shape.cidr !== undefined)),
  ];
}

function poolProblems(pool: Pool, shape: PoolShape, spec: InstallationSpec, facts: ClusterFacts): Problem[] {
  const encapsulation = pool.encapsulation ?? "";
  const ebpf = spec.vendorNetwork?.linuxDataplane === "BPF";
  const path = `${shape.path}.encapsulation`;
  return [
    ...(pool.cidr === undefined ? [] : [...poolShapeProblems(shape), ...poolPlaceProblems(shape, facts.podCidrs)]),
    ...(encapsulation.startsWith("IPIP") ? ipipFamilyProblems(shape, "encapsulation") : []),
    ...(ebpf && encapsulation.startsWith("IPIP")
      ? [ebpfProblem.EBPF_IPIP_POOL(path, `Pool ${pool.cidr} uses ${encapsulation}, which eBPF does not support.`)]
      : []),
    ...ownCniProblems(pool, shape.path, spec),
    ...loadBalancerProblems(shape.path, { ...pool, encapsulated: !["", "None"].includes(encapsulation) }),
    ...selectorProblems(pool.nodeSelector, `${shape.path}.nodeSelector`),
  ];
}

function ownCniProblems(pool: Pool, path: string, spec: InstallationSpec): Problem[] {
  const other = knownCni(spec) !== "Vendor";
  const hostLocal = spec.cni?.ipam?.type === "HostLocal";
  const encapsulation = pool.encapsulation ?? "None";
  const problems: Problem[] = [];
  if ((other && encapsulation !== "None") || (hostLocal && encapsulation.startsWith("VXLAN"))) {
    const message = `Pool ${pool.cidr} cannot use ${encapsulation} with this CNI plugin.`;
    problems.push(at.POOL_NEEDS_OWN_CNI(`${path}.encapsulation`, message));
  }
  if (other && pool.nodeSelector !== undefined && pool.nodeSelector !== "all()") {
    problems.push(
      at.POOL_NEEDS_OWN_CNI(`${path}.nodeSelector`, `Pool ${pool.cidr} cannot select nodes with this CNI plugin.`),
    );
  }
  return problems;
}

function ebpfProblems(network: Network, facts: ClusterFacts): Problem[] {
  const hostPorts = network.hostPorts;
  const set = hostPorts !== undefined && hostPorts !== null;
  return [
    ...(set ? [ebpfProblem.EBPF_HOST_PORTS_SET(`${NETWORK}.hostPorts`, "hostPorts must be null with eBPF.")] : []),
    ...ebpfPlatformProblems(facts),
  ];
}

function flexVolumeProblems(value: string | undefined, kind: ClusterKind | undefined, facts: ClusterFacts): Problem[] {
  const path = `${NETWORK}.flexVolumePath`;
  const wanted = vendorNames.paths.flexVolume;
  const itsImage = (facts.nodes ?? []).some((node) => parseOperatingSystem(node.osImage).family === "bottlerocket");
  if (value === undefined) {
    if (kind === undefined || !CLUSTER_KINDS[kind].hasFlexVolumePath || !itsImage) return [];
    return [at.FLEX_VOLUME_PATH_MISSING(path, `Nodes with the Bottlerocket-like image need flexVolumePath ${wanted}.`)];
  }
  if (kind !== undefined && !CLUSTER_KINDS[kind].hasFlexVolumePath) {
    const home = CLUSTER_KIND_NAMES.filter((name) => CLUSTER_KINDS[name].hasFlexVolumePath).join(", ");
    return [at.FLEX_VOLUME_PATH_PLATFORM(path, `flexVolumePath is only for ${home}, and this cluster is ${kind}.`)];
  }
  if (facts.nodes && !itsImage) {
    return [
      at.FLEX_VOLUME_PATH_PLATFORM(path, "flexVolumePath is only for the Bottlerocket-like image, which no node has."),
    ];
  }
  return value === wanted ? [] : [at.FLEX_VOLUME_PATH_VALUE(path, `flexVolumePath must be ${wanted}, not "${value}".`)];
}

function autodetectionProblems(methods: Network["nodeAddressAutodetectionV4"], path: string): Problem[] {
  if (!methods) return [];
  const used = Object.keys(methods).filter((method) => methods[method as keyof typeof methods] !== undefined);
  return [
    ...(used.length > 1 ? [at.ADDRESS_METHODS(path, `Only one of ${used.join(", ")} may be set.`)] : []),
    ...netProblems(methods.cidrs, `${path}.cidrs`, false),
    ...regexProblems(methods.interface, `${path}.interface`),
    ...regexProblems(methods.skipInterface, `${path}.skipInterface`),
  ];
}

function controlPlaneProblems(selector: Record<string, string> | undefined): Problem[] {
  const os = selector?.["kubernetes.io/os"];
  if (os === undefined || os === "linux") return [];
  const path = "spec.controlPlaneNodeSelector";
  return [at.CONTROL_PLANE_OS(path, `Control-plane components run on linux, not on ${os}.`)];
}

/** A plugin that is not one of ours is reported by the schema; here it counts as our own. */
function knownCni(spec: InstallationSpec): CniPlugin {
  const type = spec.cni?.type;
  return type !== undefined && Object.hasOwn(CNI_PLUGINS, type) ? type : "Vendor";
}

function shapeOf(pool: Pool, index: number): PoolShape {
  return {
    path: `${NETWORK}.ipPools[${index}]`,
    cidr: pool.cidr,
    ...(pool.name === undefined ? {} : { name: pool.name }),
    ...(pool.blockSize === undefined ? {} : { blockSize: pool.blockSize }),
  };
}
