import { type Cidr, formatAddress, formatCidr, parseCidr } from "../../kit/ip.ts";
import type { PlatformProfileOptions } from "../platform-profile.ts";
import type { NodeSpec } from "../runtime/node-runtime.ts";
import { errors } from "./errors.ts";
import { type NodeImage, TOO_OLD_IMAGES, WINDOWS_IMAGE } from "./node-images.ts";

/** One node to be, before its platform has said anything about it. */
export interface PlannedNode {
  /** From 0. */
  index: number;
  /** The platform shows one control-plane node, or none where it keeps them to itself. */
  role: "control-plane" | "worker";
  zone: string;
  image: NodeImage;
  internalIPs: string[];
  /** The subnet of each. */
  networks: string[];
  podCIDRs: string[];
}

/** What a platform says of its nodes. */
export interface NodePlan {
  podCidrs: readonly string[];
  /** The network the nodes are in, one per family. */
  nodeCidrs: readonly string[];
  /** Given to the nodes in turn. */
  images: readonly NodeImage[];
  zones: readonly string[];
  controlPlane: "shown" | "hidden";
  describe(node: PlannedNode): Pick<NodeSpec, "name"> & Partial<NodeSpec>;
}

const REGION = "topology.kubernetes.io/region";
const ZONE = "topology.kubernetes.io/zone";

export function planNodes(options: PlatformProfileOptions, plan: NodePlan): NodeSpec[] {
  const { nodes, oldNodes, windowsNodes } = options;
  const linux = nodes - windowsNodes;
  if (linux < Math.max(oldNodes, 1)) throw errors.TOO_FEW_NODES(nodes, oldNodes, windowsNodes);
  return Array.from({ length: nodes }, (_, index) => {
    const node: PlannedNode = {
      index,
      role: index === 0 && plan.controlPlane === "shown" ? "control-plane" : "worker",
      zone: plan.zones[index % plan.zones.length] as string,
      image: imageOf(index, options, plan),
      internalIPs: subnetsOf(options, plan.nodeCidrs, index).map((subnet) => nodeAddress(subnet, index)),
      networks: subnetsOf(options, plan.nodeCidrs, index).map(formatCidr),
      podCIDRs: families(options, plan.podCidrs).map((cidr) => podRange(cidr, index, nodes)),
    };
    return nodeSpec(node, plan);
  });
}

function nodeSpec(node: PlannedNode, plan: NodePlan): NodeSpec {
  const { image, internalIPs, networks, podCIDRs, zone } = node;
  const told = plan.describe(node);
  const labels = { [ZONE]: zone, [REGION]: zone.replace(/-?[a-z0-9]$/, ""), ...told.labels };
  return { ...image, internalIPs, networks, podCIDRs, ...told, labels };
}

/** The last nodes run Windows, those before them are too old, and the rest have the platform's own images. */
function imageOf(index: number, { nodes, oldNodes, windowsNodes }: PlatformProfileOptions, plan: NodePlan): NodeImage {
  const linux = nodes - windowsNodes;
  if (index >= linux) return WINDOWS_IMAGE;
  const old = index - (linux - oldNodes);
  if (old >= 0) return TOO_OLD_IMAGES[old % TOO_OLD_IMAGES.length] as NodeImage;
  return plan.images[index % plan.images.length] as NodeImage;
}

function families({ dualStack }: PlatformProfileOptions, cidrs: readonly string[]): Cidr[] {
  return cidrs.slice(0, dualStack ? 2 : 1).map((text) => {
    const cidr = parseCidr(text);
    if (!cidr) throw new TypeError(`"${text}" is not a prefix`);
    return cidr;
  });
}

/** Nodes are on the subnets in turn, which share the platform's network between them. */
function subnetsOf(options: PlatformProfileOptions, cidrs: readonly string[], index: number): Cidr[] {
  const { subnets = 1 } = options;
  const bits = Math.ceil(Math.log2(subnets));
  return families(options, cidrs).map((cidr) => {
    const length = cidr.length + bits;
    const size = 1n << BigInt(cidr.family.bits - length);
    return { ...cidr, base: cidr.base + BigInt(index % subnets) * size, length };
  });
}

/** From the second address on: the first is the segment's own. */
function nodeAddress({ family, base }: Cidr, index: number): string {
  return formatAddress({ family, value: base + BigInt(index + 2) });
}

/** A /24 (or /64) each, as clusters are made; smaller where the pod network is too small for so many nodes. */
function podRange(cidr: Cidr, index: number, nodes: number): string {
  const enough = cidr.length + Math.ceil(Math.log2(Math.max(nodes, 1)));
  const length = Math.max(enough, cidr.family.bits === 32 ? 24 : 64);
  const size = 1n << BigInt(cidr.family.bits - length);
  return formatCidr({ ...cidr, base: cidr.base + BigInt(index) * size, length });
}

/** A control-plane node keeps ordinary pods away, unless there is no other node for them. */
export function controlPlaneTaints(node: PlannedNode, { nodes }: PlatformProfileOptions): NodeSpec["taints"] {
  if (node.role !== "control-plane" || nodes === 1) return undefined;
  return [{ key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" }];
}

export function roleLabels(node: PlannedNode): Record<string, string> {
  return node.role === "control-plane"
    ? { "node-role.kubernetes.io/control-plane": "", "node.kubernetes.io/exclude-from-external-load-balancers": "" }
    : {};
}
