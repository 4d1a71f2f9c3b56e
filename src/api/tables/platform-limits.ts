import { NODE_IMAGES, type NodeImageRow } from "../node-images.ts";
import type { ClusterKind } from "./cluster-kinds.ts";
import { compareKernels, type KernelRelease, parseKernelRelease } from "./kernel-release.ts";
import { type OperatingSystem, parseOperatingSystem, releaseAtLeast } from "./operating-system.ts";

/** The platform constraints of eBPF, as the specification has them. */
export const PLATFORM_LIMITS = {
  architecture: {
    rule: "x86-64 or arm64, little-endian",
    because: "eBPF supports x86-64 and arm64, little-endian. See docs/guide/kernels.md.",
  },
  datastore: {
    rule: "the Kubernetes API, not etcd",
    because:
      "eBPF needs the Kubernetes API datastore: the etcd datastore cannot watch Services. See docs/guide/resources.md#datastores.",
  },
  kernel: {
    rule: "Ubuntu 20.04, enterprise Linux 8.2 with kernel 4.18.0-193, or any other with kernel 5.3; or later",
    because:
      "eBPF needs Ubuntu 20.04 or later, enterprise Linux 8.2 with kernel 4.18.0-193 or later, or any other distribution with kernel 5.3 or later. See docs/guide/kernels.md.",
  },
  immutableSystems: {
    rule: "the control-group path is writable",
    because: "On an immutable operating system cgroupV2Path must be a writable path. See docs/guide/kernels.md.",
  },
  network: {
    rule: "the network allows VXLAN between nodes",
    because: "The network must allow VXLAN (UDP 4789) between nodes. See docs/guide/cluster-kinds.md.",
  },
  overlay: {
    rule: "VXLAN, not IPIP",
    because: "eBPF supports VXLAN, not IPIP. See docs/guide/cluster-kinds.md#nodes-below-the-limits.",
  },
  ipv6: {
    rule: "dual-stack and IPv6-only work",
    because: "IPv6 is supported, dual-stack and alone.",
  },
  mixedClusters: {
    rule: "every node runs Linux with eBPF",
    because:
      "eBPF does not support clusters that mix eBPF nodes with standard or Windows nodes. See docs/guide/cluster-kinds.md#nodes-below-the-limits.",
  },
  floatingIPs: {
    rule: "no floating IPs",
    because: "eBPF does not support floating IPs. See docs/guide/cluster-kinds.md#nodes-below-the-limits.",
  },
  sctp: {
    rule: "no SCTP",
    because:
      "eBPF does not support SCTP, in policy or in Services. See docs/guide/cluster-kinds.md#nodes-below-the-limits.",
  },
  vlan: {
    rule: "no tagged VLAN devices",
    because: "eBPF does not support tagged VLAN devices. See docs/guide/cluster-kinds.md#nodes-below-the-limits.",
  },
  clusterKind: {
    rule: "one of the six supported kinds",
    because:
      "eBPF does not support managed services with an incompatible CNI plugin of their own. See docs/guide/cluster-kinds.md.",
  },
  stableAddress: {
    rule: "a stable API server address at install time",
    because:
      "Without a stable API server address eBPF cannot be enabled at install time, only afterwards. See docs/guide/install.md#the-address-of-the-api-server.",
  },
} as const satisfies Record<string, { rule: string; because: string }>;

const ARCHITECTURES = ["amd64", "x86_64", "x86-64", "arm64", "aarch64"];

export function supportedArchitecture(architecture: string): boolean {
  return ARCHITECTURES.includes(architecture.toLowerCase());
}

const GENERAL_FLOOR = parseKernelRelease("5.3")!;
const ENTERPRISE_FLOOR = parseKernelRelease("4.18.0-193")!;

export type KernelVerdict = { ok: true; because: string } | { ok: false; need: string; because: string };

/**
 * Whether a node's kernel is recent enough for eBPF. The kernel decides where its release can be read: a new userland on
 * an old kernel (a container image, a held-back update) would otherwise pass.
 */
export function kernelVerdict(node: { osImage: string; kernelVersion: string }, kind?: ClusterKind): KernelVerdict {
  const system = parseOperatingSystem(node.osImage);
  const kernel = parseKernelRelease(node.kernelVersion);
  const image = kind && nodeImage(kind, system);
  if (image && !image.recentEnough) return { ok: false, need: "a newer node image", because: image.because };
  if (!kernel) return verdictWithoutKernel(system, image);
  if (system.family === "enterprise-linux" || kernel.enterpriseLinux !== undefined) {
    return enterpriseVerdict(system, kernel);
  }
  return compareKernels(kernel, GENERAL_FLOOR, false) >= 0 ? ok() : tooOld("kernel 5.3 or later");
}

function enterpriseVerdict(system: OperatingSystem, kernel: KernelRelease): KernelVerdict {
  const need = "release 8.2 with kernel 4.18.0-193, or later";
  if (system.family === "enterprise-linux" && system.release && !atLeastEnterprise82(system.release)) {
    return tooOld(need);
  }
  return compareKernels(kernel, ENTERPRISE_FLOOR, true) >= 0 ? ok() : tooOld(need);
}

/** `CentOS Linux 8` names no minor release; its kernel then decides alone. */
function atLeastEnterprise82(release: { major: number; minor: number }): boolean {
  return releaseAtLeast(release, 8, 2) || (release.major === 8 && release.minor === 0);
}

function verdictWithoutKernel(system: OperatingSystem, image: NodeImageRow | undefined): KernelVerdict {
  if (image) return { ok: true, because: image.because };
  const ubuntu = system.family === "ubuntu" && system.release && releaseAtLeast(system.release, 20, 4);
  return ubuntu ? ok() : tooOld("a kernel release that can be read");
}

function nodeImage(kind: ClusterKind, system: OperatingSystem): NodeImageRow | undefined {
  return NODE_IMAGES.find(
    (row) =>
      row.kind === kind &&
      row.family === system.family &&
      (!row.release || (row.release.major === system.release?.major && row.release.minor === system.release.minor)),
  );
}

const ok = (): KernelVerdict => ({ ok: true, because: PLATFORM_LIMITS.kernel.because });
const tooOld = (need: string): KernelVerdict => ({ ok: false, need, because: PLATFORM_LIMITS.kernel.because });
