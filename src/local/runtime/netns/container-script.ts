import { IMAGE_ROOT, leaveLines, OUR_IMAGE, overlayLine, systemLines } from "./node-script.ts";
import { quoted, shellLine, writeLines } from "./shell-words.ts";
import { withoutLinks } from "./without-links.ts";

export interface ContainerFrame {
  id: string;
  hostname: string;
  hosts: string;
  /** Where the node has the files of the one image. */
  files: string;
  mounts: readonly FrameMount[];
  workingDir: string;
  command: readonly string[];
}

export interface FrameMount {
  /** On the node. */
  from: string;
  /** In the container. */
  to: string;
  isDirectory: boolean;
  readOnly: boolean;
  propagation: "None" | "HostToContainer" | "Bidirectional";
}

/** The descriptor on which a container's frame says that all is mounted and its program begins. */
export const STARTED_FD = 3;

/**
 * What a process of a node runs to become a container: a file system of its own over the image, volumes mounted, and in the end the program
 * in its place. It runs on the node, in the network namespace of the pod.
 */
export function containerScript({ id, hostname, hosts, files, mounts, workingDir, command }: ContainerFrame): string {
  const base = `/run/containers/${id}`;
  return [
    shellLine("mkdir", "-p", base),
    shellLine("mount", "-t", "tmpfs", "tmpfs", base),
    shellLine("mkdir", `${base}/upper`, `${base}/work`, `${base}/root`),
    overlayLine(IMAGE_ROOT, base),
    shellLine("cd", `${base}/root`),
    shellLine("mkdir", "-p", ".old", OUR_IMAGE.slice(1)),
    ...systemLines(),
    shellLine("mount", "--rbind", files, OUR_IMAGE.slice(1)),
    ...writeLines("etc/hosts", hosts),
    ...[...mounts].sort((a, b) => (a.to < b.to ? -1 : 1)).flatMap(mountLines),
    shellLine("hostname", hostname),
    ...leaveLines(),
    shellLine("cd", workingDir),
    `echo started >&${STARTED_FD}`,
    `exec ${STARTED_FD}>&-`,
    `exec ${command.map(quoted).join(" ")}`,
  ].join("\n");
}

function mountLines({ from, to, isDirectory, readOnly, propagation }: FrameMount): string[] {
  const target = withoutLinks(to).replace(/^\/+/, "");
  const parent = target.slice(0, Math.max(0, target.lastIndexOf("/"))) || ".";
  return [
    isDirectory ? shellLine("mkdir", "-p", target) : shellLine("mkdir", "-p", parent),
    ...(isDirectory ? [] : [`[ -e ${quoted(target)} ] || ${shellLine("touch", target)}`]),
    shellLine("mount", "--rbind", from, target),
    ...(propagation === "Bidirectional" ? [] : [shellLine("mount", SPREAD[propagation], target)]),
    ...(readOnly ? [shellLine("mount", "-o", "remount,bind,ro", target)] : []),
  ];
}

const SPREAD = { None: "--make-rprivate", HostToContainer: "--make-rslave" } as const;
