import type { Names } from "../../api/names.ts";

/** A way to install with plain manifests and no operator. */
export interface ManifestVariant {
  file: string;
  title: string;
  /** What connects the nodes: the service, an overlay of its own, or the network itself. Pods are connected to their node by the service. */
  networking: "own" | "overlay" | "foreign";
  datastore: "api" | "etcd";
}

export function manifestVariants({ manifests }: Names): readonly ManifestVariant[] {
  return [
    { file: manifests.policyAndNetworking, title: "Policy and networking", networking: "own", datastore: "api" },
    {
      file: manifests.policyAndOverlay,
      title: "Policy, and networking by a separate overlay",
      networking: "overlay",
      datastore: "api",
    },
    {
      file: manifests.policyOnly,
      title: "Policy, on a network that routes the podCIDR of each node",
      networking: "foreign",
      datastore: "api",
    },
    {
      file: manifests.policyAndNetworkingEtcd,
      title: "Policy and networking, on the etcd datastore",
      networking: "own",
      datastore: "etcd",
    },
    {
      file: manifests.policyAndOverlayEtcd,
      title: "Policy, and networking by a separate overlay, on the etcd datastore",
      networking: "overlay",
      datastore: "etcd",
    },
  ];
}
