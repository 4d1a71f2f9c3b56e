import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Netns } from "../../../kernel/netns/netns-port.ts";
import type { NodeSpec } from "../node-runtime.ts";
import { inGroup, killGroup, makeGroup, removeGroup } from "./cgroups.ts";
import { errors } from "./errors.ts";
import { nodeGroup, nodeScript } from "./node-script.ts";
import type { Places } from "./places.ts";
import { type Ran, type RunOptions, runCommand, SYSTEM_PATH } from "./run-command.ts";
import type { Segment } from "./segment.ts";
import { withoutLinks } from "./without-links.ts";

/** One node: a network namespace on the segment and a file system of its own, held by a process that does nothing else. */
export interface Machine {
  readonly spec: NodeSpec;
  readonly netns: Netns;
  readonly cgroup: string;
  /** Where a path of the node is for us. */
  path(path: string): string;
  /** The prefix of a command that runs on the node; optionally in another network namespace. */
  on(netns?: string): string[];
  run(command: readonly string[], options?: RunOptions): Promise<Ran>;
  /** Ends everything on it. What it held is gone with it. */
  close(): Promise<void>;
}

export interface MachineParts {
  kernel: Kernel;
  places: Places;
  segment: Segment;
  /** Lines of `/etc/hosts`. */
  hosts: string;
  /** Programs outside the root file system that are to be on every node. */
  also: readonly string[];
  /** Where nodes see their control groups. */
  cgroupPath: string;
  runsContainers: boolean;
}

export async function startMachine(spec: NodeSpec, parts: MachineParts): Promise<Machine> {
  const { kernel, places, segment } = parts;
  const netnsName = places.netns(spec.name);
  const netns = kernel.netns.create(netnsName);
  segment.plug(netns, spec.internalIPs, spec.networks ?? []);
  const base = places.node(spec.name);
  for (const directory of [base, places.disks]) mkdirSync(directory, { recursive: true });
  const cgroup = makeGroup(places.nodeCgroup(spec.name));
  makeGroup(nodeGroup(cgroup));
  const { hosts, also, cgroupPath, runsContainers } = parts;
  const script = nodeScript({
    ...{ name: spec.name, base, image: places.image, disks: places.disks, also },
    cgroup,
    cgroupPath,
    hosts,
    runsContainers,
  });
  const holder = await hold(spec.name, `/run/netns/${netnsName}`, cgroup, script);
  const pid = holder.pid as number;
  const on = (other?: string) => [
    ...["nsenter", `--mount=/proc/${pid}/ns/mnt`, `--uts=/proc/${pid}/ns/uts`, `--cgroup=/proc/${pid}/ns/cgroup`],
    `--net=${other ?? `/proc/${pid}/ns/net`}`,
    "--",
  ];
  return {
    spec,
    netns,
    cgroup,
    path: (path) => `/proc/${pid}/root${withoutLinks(path)}`,
    on,
    run: (command, options) => runCommand([...on(), ...command], options),
    async close() {
      killGroup(cgroup);
      await removeGroup(cgroup);
      netns.close();
      kernel.netns.delete(netnsName);
    },
  };
}

/** Comes back when the node's file system is there. */
async function hold(node: string, netns: string, cgroup: string, script: string): Promise<ChildProcess> {
  const [command = "", ...args] = [
    ...inGroup(cgroup),
    ...[
      "nsenter",
      `--net=${netns}`,
      "unshare",
      "--mount",
      "--uts",
      "--cgroup",
      "--propagation",
      "slave",
      "sh",
      "-ec",
      script,
    ],
  ];
  const child = spawn(command, args, {
    // A session of its own: who interrupts us from a terminal asks us to stop, and not the nodes.
    detached: true,
    env: { PATH: SYSTEM_PATH },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout.once("data", () => resolve());
    child.once("error", (error) => reject(errors.NODE_DID_NOT_START(node, error.message)));
    child.once("close", () => reject(errors.NODE_DID_NOT_START(node, said.trim() || "it ended at once")));
  });
  return child;
}
