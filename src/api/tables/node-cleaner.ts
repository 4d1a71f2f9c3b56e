/** How a node is cleaned of what its agent wrote: by vendorctl one pod for each node, by hand a DaemonSet that is published. */

/** Pods that clean nodes are in a namespace of their own: those of the service are removed before. */
export const CLEANUP_NAMESPACE = "vendor-cleanup";

export interface NodeCleaner {
  image: string;
  /** Of the node, as its agent was installed with them. */
  cni: { binDir: string; confDir: string };
}

/** In the node's network and tolerating everything: it runs without CNI or ready node. */
export const cleanerSpec = {
  hostNetwork: true,
  terminationGracePeriodSeconds: 5,
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  priorityClassName: "system-node-critical",
  tolerations: [{ operator: "Exists" }],
};

/** Directories are mounted by their parents: a mount point cannot be deleted. Unmounting must reach the node. */
function mountsOf({ cni }: NodeCleaner): { name: string; path: string; at: string; propagation?: string }[] {
  return [
    { name: "run", path: "/var/run", at: "/host/run", propagation: "Bidirectional" },
    { name: "lib", path: "/var/lib", at: "/host/lib" },
    { name: "bpffs", path: "/sys/fs/bpf", at: "/sys/fs/bpf", propagation: "HostToContainer" },
    { name: "cni-bin-dir", path: cni.binDir, at: "/host/cni/bin" },
    { name: "cni-conf-dir", path: cni.confDir, at: "/host/cni/conf" },
  ];
}

export function cleanerVolumes(cleaner: NodeCleaner): object[] {
  return mountsOf(cleaner).map(({ name, path }) => ({ name, hostPath: { path, type: "DirectoryOrCreate" } }));
}

export function cleanerContainer(cleaner: NodeCleaner): object {
  return {
    name: "clean",
    image: cleaner.image,
    imagePullPolicy: "IfNotPresent",
    command: ["vendor", "node", "remove", "--yes", "--wait", "60"],
    env: [
      { name: "RUN_DIR", value: "/host/run/vendor" },
      { name: "STATE_DIR", value: "/host/lib/vendor" },
      { name: "KUBELET_DIR", value: "/host/lib/kubelet" },
    ],
    securityContext: { privileged: true, runAsUser: 0, runAsGroup: 0 },
    volumeMounts: mountsOf(cleaner).map(({ name, at, propagation }) => ({
      name,
      mountPath: at,
      ...(propagation && { mountPropagation: propagation }),
    })),
  };
}
