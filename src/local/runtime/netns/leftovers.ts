import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Kernel } from "../../../kernel/kernel.ts";
import { processStart } from "../../cluster-state.ts";
import { killGroup, removeGroup } from "./cgroups.ts";
import { errors } from "./errors.ts";
import { type Places, placesOf } from "./places.ts";

/** Takes the places of a cluster for this process, after whatever a killed one left in them has been removed. */
export async function claim(kernel: Kernel, places: Places): Promise<void> {
  const owner = ownerOf(places);
  if (owner !== undefined && owner !== process.pid) throw errors.REAL_NODES_IN_USE(places.cluster, owner);
  await removeAll(kernel, places);
  mkdirSync(places.directory, { recursive: true, mode: 0o755 });
  writeFileSync(places.owner, `${process.pid} ${processStart(process.pid)}`);
}

/** Everything of the cluster on this machine, with no memory of what there is: processes first, since they hold the rest. */
export async function removeAll(kernel: Kernel, places: Places): Promise<void> {
  killGroup(places.cgroup);
  await removeGroup(places.cgroup);
  for (const name of kernel.netns.names()) if (places.owns(name)) kernel.netns.delete(name);
  rmSync(places.directory, { recursive: true, force: true });
}

/** Removes what a dead cluster of this name left. Whether there was any. */
export async function removeLeftovers(kernel: Kernel, cluster: string): Promise<boolean> {
  const places = placesOf(cluster, kernel.cgroup.root() ?? "");
  const isThere = existsSync(places.directory) || kernel.netns.names().some((name) => places.owns(name));
  if (!isThere || ownerOf(places) !== undefined) return false;
  await removeAll(kernel, places);
  return true;
}

/** The process that owns it now; undefined without one, or if it is dead. */
function ownerOf(places: Places): number | undefined {
  if (!existsSync(places.owner)) return undefined;
  const [pid = "", start = ""] = readFileSync(places.owner, "utf8").split(" ");
  return processStart(Number(pid)) === start ? Number(pid) : undefined;
}
