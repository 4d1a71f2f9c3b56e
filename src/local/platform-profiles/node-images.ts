import type { NodeSpec } from "../runtime/node-runtime.ts";

/** What a node says of its system: the facts the limits of eBPF are about. */
export type NodeImage = Pick<
  NodeSpec,
  "osImage" | "kernelVersion" | "architecture" | "containerRuntimeVersion" | "operatingSystem"
>;

const UBUNTU_24: NodeImage = {
  osImage: "Ubuntu 24.04.3 LTS",
  kernelVersion: "6.8.0-79-generic",
  architecture: "amd64",
};
/** The oldest enterprise Linux the limits allow. */
const RHEL_82: NodeImage = {
  osImage: "Red Hat Enterprise Linux 8.2 (Ootpa)",
  kernelVersion: "4.18.0-193.el8.x86_64",
  architecture: "amd64",
};
const DEBIAN_ARM: NodeImage = {
  osImage: "Debian GNU/Linux 12 (bookworm)",
  kernelVersion: "6.1.0-38-arm64",
  architecture: "arm64",
};
/** The oldest Debian-family release the limits allow. */
const UBUNTU_20: NodeImage = {
  osImage: "Ubuntu 20.04.6 LTS",
  kernelVersion: "5.4.0-216-generic",
  architecture: "amd64",
};

export const SELF_MANAGED_IMAGES = [UBUNTU_24, RHEL_82, DEBIAN_ARM, UBUNTU_20] as const;

export const CLUSTER_TOOL_IMAGES = [
  { osImage: "Ubuntu 24.04.3 LTS", kernelVersion: "6.8.0-1036-aws", architecture: "amd64" },
  {
    osImage: "Flatcar Container Linux by Kinvolk 4230.2.2 (Oklo)",
    kernelVersion: "6.6.95-flatcar",
    architecture: "amd64",
  },
  { osImage: "Ubuntu 22.04.5 LTS", kernelVersion: "6.8.0-1036-aws", architecture: "arm64" },
] as const satisfies readonly NodeImage[];

export const ENTERPRISE_PLATFORM_IMAGES = [
  {
    osImage: "Red Hat Enterprise Linux CoreOS 9.6.20250805-0 (Plow)",
    kernelVersion: "5.14.0-570.30.1.el9_6.x86_64",
    architecture: "amd64",
    containerRuntimeVersion: "cri-o://1.33.3",
  },
] as const satisfies readonly NodeImage[];

/** The 18.04 image is recent enough here, because this service gives it a newer kernel. */
export const AKS_IMAGES = [
  { osImage: "Ubuntu 22.04.5 LTS", kernelVersion: "5.15.0-1092-azure", architecture: "amd64" },
  { osImage: "Ubuntu 18.04.6 LTS", kernelVersion: "5.4.0-1109-azure", architecture: "amd64" },
  { osImage: "Microsoft Azure Linux 3.0", kernelVersion: "6.6.92.2-2.azl3", architecture: "arm64" },
] as const satisfies readonly NodeImage[];

export const EKS_IMAGES = [
  { osImage: "Amazon Linux 2023.8.20250808", kernelVersion: "6.1.147-172.266.amzn2023.x86_64", architecture: "amd64" },
  { osImage: "Bottlerocket OS 1.44.0 (aws-k8s-1.33)", kernelVersion: "6.1.147", architecture: "amd64" },
  { osImage: "Amazon Linux 2", kernelVersion: "5.10.240-238.959.amzn2.aarch64", architecture: "arm64" },
] as const satisfies readonly NodeImage[];

export const CONTAINER_PLATFORM_IMAGES = [
  { ...UBUNTU_20, containerRuntimeVersion: "docker://25.0.12" },
  { ...RHEL_82, containerRuntimeVersion: "docker://25.0.12" },
] as const satisfies readonly NodeImage[];

/** Each is below one of the limits, and below that one only. Asked for one after another. */
export const TOO_OLD_IMAGES = [
  { osImage: "Ubuntu 18.04.6 LTS", kernelVersion: "4.15.0-213-generic", architecture: "amd64" },
  { osImage: "CentOS Linux 7 (Core)", kernelVersion: "3.10.0-1160.119.1.el7.x86_64", architecture: "amd64" },
  { osImage: "Debian GNU/Linux 10 (buster)", kernelVersion: "5.2.0-0.bpo.3-amd64", architecture: "amd64" },
  { osImage: "Debian GNU/Linux 12 (bookworm)", kernelVersion: "6.1.0-38-armmp", architecture: "arm" },
  { osImage: "Ubuntu 24.04.3 LTS", kernelVersion: "6.8.0-79-generic", architecture: "s390x" },
] as const satisfies readonly NodeImage[];

export const WINDOWS_IMAGE: NodeImage = {
  osImage: "Windows Server 2022 Datacenter",
  kernelVersion: "10.0.20348.3932",
  architecture: "amd64",
  operatingSystem: "windows",
  containerRuntimeVersion: "containerd://1.7.28",
};
