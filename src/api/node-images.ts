import type { ClusterKind } from "./cluster-kinds.ts";
import type { OperatingSystem } from "./operating-system.ts";

export interface NodeImageRow {
  kind: ClusterKind;
  family: OperatingSystem["family"];
  release?: { major: number; minor: number };
  recentEnough: boolean;
  because: string;
}

const UBUNTU_1804 = { family: "ubuntu", release: { major: 18, minor: 4 } } as const;
const NODE_IMAGE_RULE =
  "Node images: Ubuntu-like 18.04 image on a managed service: recent enough on the AKS-like service";

/** What is known of the managed services' node images, for when no node has been seen yet. */
export const NODE_IMAGES: readonly NodeImageRow[] = [
  { kind: "aks", ...UBUNTU_1804, recentEnough: true, because: `${NODE_IMAGE_RULE}.` },
  { kind: "eks", ...UBUNTU_1804, recentEnough: false, because: `${NODE_IMAGE_RULE}, not on the EKS-like service.` },
  {
    kind: "eks",
    family: "amazon-linux",
    recentEnough: true,
    because: "Node images: the default Amazon-like image is recent enough.",
  },
  {
    kind: "eks",
    family: "bottlerocket",
    recentEnough: true,
    because: "Node images: the Bottlerocket-like image is recent enough.",
  },
];
