import { existsSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isOurInterface } from "../api/protocol/pod-network.ts";
import { createNatTable } from "../dataplane/nft/nat-table.ts";
import { type Kernel, realKernel } from "../kernel/kernel.ts";
import { sleep, systemClock } from "../kit/clock.ts";
import { adminSocket, requestAgent } from "./admin.ts";
import { removeBirdRoutes } from "./bgp/bird-routes.ts";
import type { AgentDirectories } from "./config.ts";
import { openDataplanes, TABLES } from "./dataplanes.ts";
import { errors } from "./errors.ts";
import { mountsBelow, mountsOfOthers, nodeLeftovers } from "./node-leftovers.ts";
import { driverPlaces } from "./policy-sync/driver-places.ts";
import { removeSeparateOverlay } from "./separate-overlay/settle-overlay.ts";

const ASK_AGAIN_MS = 500;

/** Removes everything of ours from the node, recognised by what it is and not by memory, and proves it by listing; gives what it removed. */
export async function removeFromNode(
  directories: AgentDirectories,
  { cniFiles, kubeletDir }: { cniFiles: readonly string[]; kubeletDir: string },
): Promise<string[]> {
  const kernel = realKernel();
  const removed = [...(await removeInterfaces(kernel)), ...(await removeDataplanes(kernel, directories))];
  for (const path of [directories.state, directories.run]) {
    if (!existsSync(path)) continue;
    for (const mounted of unmountBelow(kernel, path)) removed.push(`mount ${mounted}`);
    removeTree(path, mountsOfOthers(kernel, path));
    removed.push(path);
  }
  removed.push(...removeDriver(kubeletDir));
  const { plugin, registration } = driverPlaces(kubeletDir);
  const left = await nodeLeftovers(kernel, directories, [...cniFiles, plugin, registration]);
  if (left.length > 0) throw errors.NODE_NOT_CLEAN(left);
  return removed;
}

/** Resolves when no agent answers: it would restore what is removed. */
export async function agentStopped(
  { run }: AgentDirectories,
  { waitMs, signal }: { waitMs: number; signal: AbortSignal },
): Promise<void> {
  const until = systemClock.now() + waitMs;
  const isAlive = () =>
    requestAgent(run, { show: "settings" }).then(
      () => true,
      () => false,
    );
  while (await isAlive()) {
    if (systemClock.now() >= until || signal.aborted) throw errors.AGENT_RUNS(adminSocket(run));
    await sleep(systemClock, ASK_AGAIN_MS, signal);
  }
}

async function removeInterfaces(kernel: Kernel): Promise<string[]> {
  const netlink = kernel.netlink();
  const removed: string[] = [];
  for (const { name, index } of netlink.links()) {
    if (!isOurInterface(name)) continue;
    await netlink.deleteLink(index);
    removed.push(`interface ${name}`);
  }
  removed.push(...removeBirdRoutes(netlink));
  netlink.close();
  return removed;
}

async function removeDataplanes(kernel: Kernel, directories: AgentDirectories): Promise<string[]> {
  const { open, kernel: switchover, network } = await openDataplanes(kernel, { directories });
  const removed: string[] = [];
  for (const [kind, openPlane] of Object.entries(open)) {
    // Without pins there are no programs, and to open the data plane would mount a BPF file system.
    if (kind === "BPF" && !existsSync(directories.bpf)) continue;
    const plane = await openPlane();
    await plane.remove();
    await plane.close();
    removed.push(`data plane ${kind}`);
  }
  const nat = createNatTable({ kernel, table: TABLES.nat });
  await nat.remove();
  nat.close();
  await switchover.keep.remove();
  switchover.close();
  await network.remove();
  await network.close();
  return [...removed, "routes and the devices of the overlay", ...(await removeSeparateOverlay(kernel))];
}

/** The driver of sidecars' volumes. A directory that others have filled under the same name is theirs. */
function removeDriver(kubeletDir: string): string[] {
  const { plugin, registration, flexVolume } = driverPlaces(kubeletDir);
  const isOurs = (path: string) => existsSync(path) && (path !== flexVolume || readdirSync(path).length === 0);
  const removed = [plugin, registration, flexVolume].filter(isOurs);
  for (const path of removed) rmSync(path, { recursive: true, force: true });
  return removed;
}

/** The control groups' file system that `node-init` mounted: files cannot be deleted from it. */
function unmountBelow(kernel: Kernel, directory: string): string[] {
  const others = mountsOfOthers(kernel, directory);
  const paths = mountsBelow(kernel, directory).map(({ path }) => path);
  return [...new Set(paths)].filter((path) => !others.includes(path) && kernel.mounts.unmount(path));
}

/** All of a directory but the mounts of others in it, and what leads to them. */
function removeTree(path: string, kept: readonly string[]): void {
  const place = realpathSync(path);
  if (kept.includes(place)) return;
  if (kept.some((mount) => mount.startsWith(`${place}/`))) {
    for (const name of readdirSync(path)) removeTree(join(path, name), kept);
  } else rmSync(path, { recursive: true, force: true });
}
