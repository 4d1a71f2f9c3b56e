import { existsSync, rmSync } from "node:fs";
import { POD_INTERFACE_PREFIX } from "../api/protocol/pod-network.ts";
import { realKernel } from "../kernel/kernel.ts";
import { adminSocket, requestAgent } from "./admin.ts";
import type { AgentDirectories } from "./config.ts";
import { openDataplanes } from "./dataplanes.ts";
import { errors } from "./errors.ts";

/** Takes everything of ours off the node, recognised by what it is and not by memory; says what went. */
export async function removeFromNode(directories: AgentDirectories): Promise<string[]> {
  const alive = await requestAgent(directories.run, { show: "settings" }).then(
    () => true,
    () => false,
  );
  if (alive) throw errors.AGENT_RUNS(adminSocket(directories.run));
  const kernel = realKernel();
  const { open, kernel: ground, network } = await openDataplanes(kernel, { directories });
  const removed: string[] = [];
  const netlink = kernel.netlink();
  for (const { name, index } of netlink.links()) {
    if (!name.startsWith(POD_INTERFACE_PREFIX)) continue;
    await netlink.deleteLink(index);
    removed.push(`interface ${name}`);
  }
  netlink.close();
  for (const [kind, openPlane] of Object.entries(open)) {
    const plane = await openPlane();
    await plane.remove();
    await plane.close();
    removed.push(`data plane ${kind}`);
  }
  await ground.keep.remove();
  ground.close();
  await network.remove();
  await network.close();
  removed.push("routes and the overlay's device");
  for (const path of [directories.state, directories.run]) {
    if (!existsSync(path)) continue;
    rmSync(path, { recursive: true, force: true });
    removed.push(path);
  }
  return removed;
}
