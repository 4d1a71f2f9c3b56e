import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { isOurInterface } from "../api/protocol/pod-network.ts";
import { OUR_PROTOCOL } from "../dataplane/net/desired-routes.ts";
import { IPIP } from "../dataplane/net/ipip.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { MountedFileSystem } from "../kernel/netns/mounts-port.ts";
import { birdRoutes } from "./bgp/bird-routes.ts";
import type { AgentDirectories } from "./config.ts";
import { OVERLAY, TABLES } from "./dataplanes.ts";
import { SEPARATE_OVERLAY } from "./separate-overlay/names.ts";

/** Everything of ours that this node has, recognised by name, protocol number and place; `files` are the CNI plugin's and the volume driver's. */
export async function nodeLeftovers(
  kernel: Kernel,
  directories: AgentDirectories,
  files: readonly string[],
): Promise<string[]> {
  const netlink = kernel.netlink();
  const nft = kernel.nft();
  try {
    const own: readonly string[] = [...Object.values(TABLES), SEPARATE_OVERLAY.table];
    const devices: readonly string[] = [OVERLAY, IPIP, SEPARATE_OVERLAY.device];
    const ours = [OUR_PROTOCOL, SEPARATE_OVERLAY.protocol].flatMap((protocol) => netlink.routes({ protocol }));
    const routes = [...ours, ...birdRoutes(netlink)];
    return [
      ...netlink
        .links()
        .filter(({ name }) => devices.includes(name) || isOurInterface(name))
        .map(({ name }) => `interface ${name}`),
      ...routes.map(({ destination }) => `route ${destination}`),
      ...(await nft.tables()).filter(({ name }) => own.includes(name)).map(({ name }) => `nftables table ${name}`),
      ...[directories.bpf, directories.state, ...files].filter((path) => existsSync(path)),
      ...filesBelow(directories.run, mountsOfOthers(kernel, directories.run)),
    ];
  } finally {
    netlink.close();
    nft.close();
  }
}

/** The deepest first. */
export function mountsBelow(kernel: Kernel, directory: string): MountedFileSystem[] {
  if (!existsSync(directory)) return [];
  const place = realpathSync(directory);
  const below = kernel.mounts.mounted().filter(({ path }) => path.startsWith(`${place}/`));
  return below.sort((a, b) => b.path.length - a.path.length);
}

/** A part of a file system that was bound there, in contrast to the whole one that `node-init` mounts: the node's own, and it stays. */
export function mountsOfOthers(kernel: Kernel, directory: string): string[] {
  return mountsBelow(kernel, directory)
    .filter(({ root }) => root !== "/")
    .map(({ path }) => path);
}

/** The directory, unless there is nothing in it but mounts of others and what leads to them. */
function filesBelow(directory: string, kept: readonly string[]): string[] {
  if (!existsSync(directory)) return [];
  const place = realpathSync(directory);
  if (kept.includes(place)) return [];
  const leads = kept.some((mount) => mount.startsWith(`${place}/`));
  if (!leads || !statSync(directory).isDirectory()) return [directory];
  return readdirSync(directory).flatMap((name) => filesBelow(join(directory, name), kept));
}
