import type { ClusterKind } from "./tables/cluster-kinds.ts";
import type { OperatingSystem } from "./tables/operating-system.ts";

export interface NodeImageRow {
  kind: ClusterKind;
  family: OperatingSystem["family"];
  release?: { major: number; minor: number };
  recentEnough: boolean;
  because: string;
}

const UBUNTU_1804 = { family: "ubuntu", release: { major: 18, minor: 4 } } as const;
const NODE_IMAGE_RULE = "The Ubuntu 18.04 node image is recent enough on an AKS-like service";

/** What is known of the managed services' node images, for when no node has been seen yet. */
export const NODE_IMAGES: readonly NodeImageRow[] = [
  { kind: "aks", ...UBUNTU_1804, recentEnough: true, because: `${NODE_IMAGE_RULE}.` },
  { kind: "eks", ...UBUNTU_1804, recentEnough: false, because: `${NODE_IMAGE_RULE}, not on an EKS-like one.` },
  {
    kind: "eks",
    family: "amazon-linux",
    recentEnough: true,
    because: "The default Amazon-like node image is recent enough.",
  },
  {
    kind: "eks",
    family: "bottlerocket",
    recentEnough: true,
    because: "The Bottlerocket-like node image is recent enough.",
  },
];
