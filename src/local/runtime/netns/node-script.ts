import { DISKS } from "../../controllers/volumes/claim-binder.ts";
import { quoted, shellLine, writeLines } from "./shell-words.ts";

export interface NodeFrame {
  name: string;
  /** An empty directory of this machine to build on. */
  base: string;
  /** The one image's files. */
  image: string;
  /** A directory that all nodes share. */
  disks: string;
  /** Programs outside the root file system that are to be there too. */
  also: readonly string[];
  /** The node's group of processes, which is the root of what it sees. */
  cgroup: string;
  cgroupPath: string;
  hosts: string;
  /** Whether a container runtime is to run on it, which needs more of a machine than processes do. */
  runsContainers: boolean;
}

/** Where a node's containers find the files every image has: this machine's own, as they are. */
export const IMAGE_ROOT = "/.image";
/** Where the one image's files are, as its Containerfile has it. */
export const OUR_IMAGE = "/opt/vendor";

/** What is of the machine underneath, not of a node on it. */
const NOT_ITS_OWN = ["etc/cni", "opt/cni", "var/lib/vendor", "var/lib/cni", "var/lib/kubelet"];
const SHARED = ["run/netns", "sys/fs/bpf"];

/**
 * What a container runtime needs: directories an overlay can be made in, which one on an overlay cannot, and the node's control groups as the
 * root of all. The name servers are of the machine underneath.
 */
const RUNTIME_FILES = [
  shellLine("rm", "-rf", "etc/containerd", "var/lib/containerd", "var/log/pods"),
  shellLine("mkdir", "-p", "etc/containerd", "var/lib/containerd", "var/log/pods"),
  shellLine("mount", "-t", "tmpfs", "tmpfs", "var/lib/containerd"),
  shellLine("mount", "-t", "cgroup2", "cgroup2", "sys/fs/cgroup"),
];

/** Where the node's own processes are: a group with groups below it has none itself. */
export function nodeGroup(cgroup: string): string {
  return `${cgroup}/node`;
}

/**
 * What turns a process into a machine: a file system of its own over this machine's, with its own BPF file system, control groups and names
 * of namespaces. All of it is of a mount namespace: when the last process is gone, so is everything, whatever killed it.
 */
export function nodeScript(frame: NodeFrame): string {
  const { name, base, image, disks, also, cgroup, cgroupPath, hosts, runsContainers } = frame;
  const at = (path: string) => `${base}/${path}`;
  const inside = (path: string) => path.replace(/^\//, "");
  return [
    `echo $$ > ${quoted(nodeGroup(cgroup))}/cgroup.procs`,
    shellLine("mount", "-t", "tmpfs", "tmpfs", base),
    shellLine("mkdir", at("image"), at("upper"), at("work"), at("root")),
    shellLine("mount", "--bind", "/", at("image")),
    shellLine("mount", "--make-private", at("image")),
    overlayLine(at("image"), base),
    shellLine("cd", at("root")),
    shellLine("mkdir", "-p", inside(IMAGE_ROOT), ".old", inside(OUR_IMAGE)),
    shellLine("mount", "--bind", at("image"), inside(IMAGE_ROOT)),
    shellLine("mount", "-o", "remount,bind,ro", inside(IMAGE_ROOT)),
    shellLine("mount", "--bind", image, inside(OUR_IMAGE)),
    shellLine("mkdir", "-p", inside(DISKS)),
    shellLine("mount", "--bind", disks, inside(DISKS)),
    ...also.flatMap((path) => bindFile(path, inside(path))),
    ...systemLines(),
    shellLine("rm", "-rf", ...NOT_ITS_OWN),
    shellLine("mkdir", "-p", ...NOT_ITS_OWN, "run/netns", inside(cgroupPath)),
    shellLine("mount", "-t", "tmpfs", "tmpfs", "run/netns"),
    shellLine("mount", "-t", "bpf", "bpf", "sys/fs/bpf"),
    shellLine("mount", "--bind", cgroup, inside(cgroupPath)),
    ...SHARED.map((path) => shellLine("mount", "--make-shared", path)),
    ...(runsContainers ? RUNTIME_FILES : []),
    ...writeLines("etc/hosts", hosts),
    shellLine("hostname", name),
    ...leaveLines(),
    // As an init system does, so that a container can mount for the whole node.
    ...(runsContainers ? [shellLine("mount", "--make-rshared", "/")] : []),
    "echo ready",
    "exec sleep infinity",
  ].join("\n");
}

export function overlayLine(lower: string, base: string): string {
  const layers = `lowerdir=${lower},upperdir=${base}/upper,workdir=${base}/work`;
  return shellLine("mount", "-t", "overlay", "overlay", "-o", layers, `${base}/root`);
}

/** What every root has in addition to files. In the network namespace it is for: `/sys` shows the devices of where it was mounted. */
export function systemLines(): string[] {
  return [
    shellLine("mkdir", "-p", "proc", "sys", "dev", "run", "tmp"),
    shellLine("mount", "-t", "proc", "proc", "proc"),
    shellLine("mount", "-t", "sysfs", "sysfs", "sys"),
    shellLine("mount", "--rbind", "/dev", "dev"),
    shellLine("mount", "--make-rslave", "dev"),
    shellLine("mount", "-t", "tmpfs", "tmpfs", "run"),
    shellLine("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "tmp"),
  ];
}

/** The old root goes, and takes nothing with it: what we would unmount there must not be unmounted elsewhere. */
export function leaveLines(): string[] {
  return ["pivot_root . .old", "mount --make-rslave .old", "umount -l .old"];
}

function bindFile(from: string, to: string): string[] {
  const make = `[ -e ${shellLine(to)} ] || { mkdir -p "$(dirname ${shellLine(to)})" && touch ${shellLine(to)}; }`;
  return [make, shellLine("mount", "--bind", from, to)];
}
