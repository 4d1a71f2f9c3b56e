import { accessSync, constants, readFileSync } from "node:fs";
import type { Kernel } from "../../../kernel/kernel.ts";
import { SYSTEM_PATH } from "./run-command.ts";

const TOOLS = ["unshare", "nsenter", "mount", "umount", "pivot_root", "setpriv", "hostname"];
const FILE_SYSTEMS = ["overlay", "tmpfs", "bpf", "cgroup2"];

/** Why nodes cannot be real on this machine; undefined when they can. Found out by trying where trying is the only way to know. */
export async function whyNotReal(openKernel: () => Kernel): Promise<string | undefined> {
  if (process.platform !== "linux") return "this is not Linux";
  if (process.getuid?.() !== 0) return "that needs root";
  const known = readFileSync("/proc/filesystems", "utf8").split(/\s+/);
  const lacking = FILE_SYSTEMS.find((type) => !known.includes(type));
  if (lacking) return `this kernel has no ${lacking} file system`;
  const missing = TOOLS.find((tool) => !isInstalled(tool));
  if (missing) return `${missing} is not installed`;
  return await kernelRefusal(openKernel);
}

async function kernelRefusal(openKernel: () => Kernel): Promise<string | undefined> {
  const name = `v-probe-${process.pid}`;
  try {
    const kernel = openKernel();
    if (kernel.cgroup.root() === undefined) return "the unified control groups are not mounted";
    const netns = kernel.netns.create(name);
    try {
      const links = kernel.netlink(netns);
      links.addVeth({ name: "a", peer: { name: "b" } });
      links.addBridge("c");
      links.close();
    } finally {
      netns.close();
      kernel.netns.delete(name);
    }
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

export function isInstalled(tool: string): boolean {
  return SYSTEM_PATH.split(":").some((directory) => isProgram(`${directory}/${tool}`));
}

export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
