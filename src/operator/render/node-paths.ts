import { FLEX_VOLUME_DIRECTORY, POLICY_SYNC_DRIVER } from "../../api/protocol/policy-sync.ts";
import { CLUSTER_KINDS } from "../../api/tables/cluster-kinds.ts";
import type { RenderInputs } from "./inputs.ts";

/** What of the node the agent's pod sees. */
export interface NodePaths {
  /** Absent where another plugin connects pods. */
  cni?: { binDir: string; confDir: string };
  /** Present where the pod must be able to run eBPF. */
  ebpf?: { cgroupV2Path: string };
  /** Where the platform's node agent looks for volume drivers, if it is not the usual place. */
  flexVolume?: string;
  /** Present where sidecars are served. */
  policySync?: true;
}

interface NodePath {
  name: string;
  path: string;
  /** `Directory` only for what the kernel itself serves: where it is absent the pod would not start. */
  type: "Directory" | "DirectoryOrCreate" | "FileOrCreate";
  /** Where the container sees it; at the same path where it is left out. */
  at?: string;
  readOnly?: true;
  propagation?: "HostToContainer" | "Bidirectional";
}

export const KUBELET_DIR = "/var/lib/kubelet";
const DIRECTORY = { type: "DirectoryOrCreate" } as const;
const FOLLOW = { propagation: "HostToContainer" } as const;

export function nodePaths(inputs: RenderInputs): NodePaths {
  const { installation, names, bpf, cgroupV2Path = names.paths.cgroupV2 } = inputs;
  const { cni, vendorNetwork } = installation;
  const driver = CLUSTER_KINDS[inputs.kind].hasFlexVolumePath ? vendorNetwork?.flexVolumePath : undefined;
  return {
    ...(cni?.type === "Vendor" && cni.binDir && cni.confDir
      ? { cni: { binDir: cni.binDir, confDir: cni.confDir } }
      : {}),
    ...(bpf ? { ebpf: { cgroupV2Path } } : {}),
    ...(inputs.policySyncPathPrefix ? { policySync: true as const } : {}),
    // The path may or may not end with a slash.
    ...(driver ? { flexVolume: `${driver.replace(/\/+$/, "")}/${FLEX_VOLUME_DIRECTORY}` } : {}),
  };
}

/** Where programs of one node meet. */
export const RUN_PATH = { name: "var-run-vendor", path: "/var/run/vendor", ...DIRECTORY } as const;

/** The agent: its own directories, pods' network namespaces, and what eBPF needs. */
export function agentPaths(paths: NodePaths): NodePath[] {
  return [
    // A kernel without modules has no such directory.
    { name: "lib-modules", path: "/lib/modules", ...DIRECTORY, readOnly: true },
    { name: "xtables-lock", path: "/run/xtables.lock", type: "FileOrCreate" },
    RUN_PATH,
    { name: "var-lib-vendor", path: "/var/lib/vendor", ...DIRECTORY },
    ...(paths.policySync ? POLICY_SYNC_PATHS : []),
    { name: "netns", path: "/var/run/netns", ...DIRECTORY, ...FOLLOW },
    // In a container without privileges /proc/sys cannot be written; this is the network's part of it, of the node.
    { name: "sys-net", path: "/proc/sys/net", at: "/host/proc/sys/net", type: "Directory" },
    // Also where eBPF does not act: what it left from before is found, and removed, by its pins.
    { name: "bpffs", path: "/sys/fs/bpf", type: "Directory", ...FOLLOW },
    ...(paths.ebpf ? [{ name: "cgroup", path: paths.ebpf.cgroupV2Path, ...DIRECTORY, ...FOLLOW }] : []),
    ...cniConfPath(paths),
  ];
}

/** Where the kubelet looks for volume drivers, and where its pods' volumes are: those of sidecars have the agent's sockets. */
const POLICY_SYNC_PATHS: readonly NodePath[] = [
  { name: "kubelet-pods", path: `${KUBELET_DIR}/pods`, ...DIRECTORY },
  { name: "kubelet-registry", path: `${KUBELET_DIR}/plugins_registry`, ...DIRECTORY },
  { name: "kubelet-plugin", path: `${KUBELET_DIR}/plugins/${POLICY_SYNC_DRIVER}`, ...DIRECTORY },
];

/** `node-init` mounts file systems the whole node sees, which is why its mounts go both ways. */
export function initPaths(paths: NodePaths): NodePath[] {
  return [
    ...(paths.ebpf
      ? ([
          { name: "bpffs", path: "/sys/fs/bpf", type: "Directory", propagation: "Bidirectional" },
          { name: "cgroup", path: paths.ebpf.cgroupV2Path, ...DIRECTORY, propagation: "Bidirectional" },
          // To mount the node's control groups, and not those of this container.
          { name: "host-proc", path: "/proc", at: "/host/proc", type: "Directory", readOnly: true },
        ] as const)
      : []),
    ...(paths.flexVolume ? [{ name: "flexvolume", path: paths.flexVolume, at: "/host/flexvolume", ...DIRECTORY }] : []),
  ];
}

export function cniPaths({ cni }: NodePaths): NodePath[] {
  if (!cni) return [];
  return [{ name: "cni-bin-dir", path: cni.binDir, at: "/host/cni/bin", ...DIRECTORY }, ...cniConfPath({ cni })];
}

function cniConfPath({ cni }: NodePaths): NodePath[] {
  return cni ? [{ name: "cni-conf-dir", path: cni.confDir, at: "/host/cni/conf", ...DIRECTORY }] : [];
}

/** One volume per path of the node, however many containers see it. */
export function volumesOf(paths: readonly NodePath[]): object[] {
  const byName = new Map(paths.map(({ name, path, type }) => [name, { name, hostPath: { path, type } }]));
  return [...byName.values()];
}

export function mountsOf(paths: readonly NodePath[]): object[] {
  return paths.map(({ name, path, at = path, readOnly, propagation }) => ({
    name,
    mountPath: at,
    ...(readOnly ? { readOnly } : {}),
    ...(propagation ? { mountPropagation: propagation } : {}),
  }));
}
