import { type ChildProcess, execFile, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { LabNode } from "./node-lab.ts";

const run = promisify(execFile);
const AS = 64_512;

/** The routing daemon of a node of an older release: a mesh with all nodes, the node's block as one route, and everybody's in the kernel. */
export interface OlderBird {
  /** As its pod ends: at once. What it wrote to the kernel stays. */
  kill(): Promise<void>;
}

export interface OlderNode {
  node: LabNode;
  /** Of its pods. */
  block: string;
}

/** Older releases have BIRD 1, whose routes have no metric. Of two nodes the one with the lower address opens the session. */
export async function startOlderBird(
  { node, block }: OlderNode,
  others: readonly LabNode[],
  pool: string,
): Promise<OlderBird> {
  const { v4: own } = node.addresses;
  const file = join(node.directory, "older-bird.conf");
  const control = join(node.directory, "older-bird.ctl");
  writeFileSync(
    file,
    [
      `router id ${own};`,
      "log stderr all;",
      "protocol device { scan time 2; }",
      'protocol direct { ipv4; interface -"ven*", "*"; }',
      `protocol static { ipv4; route ${block} blackhole; }`,
      "filter to_kernel { if source = RTS_DEVICE then reject; accept; }",
      "filter to_peers {",
      `  if net = ${block} then accept;`,
      `  if net ~ [ ${block}+ ] then reject;`,
      `  if net ~ [ ${pool}+ ] then accept;`,
      "  reject;",
      "}",
      "protocol kernel {",
      "  learn; persist; scan time 2; metric 0; merge paths on; graceful restart on;",
      "  ipv4 { import all; export filter to_kernel; };",
      "}",
      "template bgp mesh {",
      `  local ${own} as ${AS};`,
      "  multihop; graceful restart on; graceful restart time 120;",
      "  connect delay time 1; connect retry time 3; error wait time 5, 60;",
      "  ipv4 { import all; export filter to_peers; gateway recursive; add paths on; };",
      "}",
      ...others.flatMap(({ addresses: { v4: peer } }) => [
        `protocol bgp mesh_${peer.replaceAll(".", "_")} from mesh {`,
        `  neighbor ${peer} as ${AS};`,
        ...(peer > own ? ["  passive on;"] : []),
        "}",
      ]),
      "",
    ].join("\n"),
  );
  const inside = `--net=/run/netns/${node.netns.name}`;
  const child: ChildProcess = spawn("nsenter", [inside, "bird", "-f", "-c", file, "-s", control], { stdio: "ignore" });
  return {
    async kill() {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await gone;
    },
  };
}

/** What such a daemon has written to a node's kernel, ordered. */
export async function olderRoutes({ netns }: LabNode): Promise<string[]> {
  const command = ["ip", "-j", "route", "show", "proto", "bird"];
  const { stdout } = await run("nsenter", [`--net=/run/netns/${netns.name}`, ...command]);
  const routes = JSON.parse(stdout || "[]") as { dst: string; metric?: number; gateway?: string }[];
  return routes
    .filter(({ metric }) => metric === undefined)
    .map(({ dst, gateway }) => (gateway === undefined ? `${dst} nowhere` : `${dst} via ${gateway}`))
    .sort();
}
