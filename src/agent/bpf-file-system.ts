import type { MountsPort } from "../kernel/netns/mounts-port.ts";
import type { CodedError } from "../kit/errors.ts";
import { errors } from "./errors.ts";

/**
 * Whether the BPF file system that programs and maps are pinned in is the node's. A container has a mount of its own of it, which stays when the
 * node's is unmounted: all goes on, until the agent restarts and finds no pins. Only that this mount is nobody's slave any more tells.
 */
export function watchBpfFileSystem(
  mounts: Pick<MountsPort, "mounted">,
  path: string,
): () => { object: string; error: CodedError } | undefined {
  let wasOfNode = false;
  return () => {
    const here = mounts.mounted().filter((mount) => mount.path === path);
    const top = here.at(-1);
    if (top?.type === "bpf" && top.propagates) {
      wasOfNode = true;
      return undefined;
    }
    // A process without a mount namespace of its own may never have had one that propagates. A container has, also of the empty directory.
    if (!wasOfNode && !here.some(({ propagates }) => propagates)) return undefined;
    return { object: `file system ${path}`, error: errors.BPF_FILE_SYSTEM_UNMOUNTED(path) };
  };
}
