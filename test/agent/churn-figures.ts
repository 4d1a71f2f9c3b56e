import { execFile } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { LabNode } from "./node-lab.ts";

const run = promisify(execFile);
const kernel = realKernel();

export interface ProcessFigures {
  rssMiB: number;
  threads: number;
  fds: number;
}

/** Undefined for a process that is gone. */
export function processFigures(pid: number | undefined): ProcessFigures | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? Number.NaN);
    const rssMiB = Math.round(field("VmRSS") / 102.4) / 10;
    // A process that was killed and is not yet waited for has no memory.
    if (Number.isNaN(rssMiB)) return undefined;
    return { rssMiB, threads: field("Threads"), fds: readdirSync(`/proc/${pid}/fd`).length };
  } catch {
    return undefined;
  }
}

/** How many descriptors of each kind: numbers of sockets and pipes, and whether a link was made or opened, do not matter. */
export function descriptors(pid: number | undefined): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const kind = kindOf(`/proc/${pid}/fd/${fd}`);
    if (kind !== undefined) counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function kindOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
      .replace(/:\[\d+\]$/, "")
      .replace("bpf_link", "bpf-link");
  } catch {
    return undefined; // Closed since the directory was read.
  }
}

export type KernelObjects = Record<string, number>;

/** What the agent has in the kernel and on disk for its pods and policies, counted where it is and not where the agent remembers it. */
export async function kernelObjects(node: LabNode): Promise<KernelObjects> {
  return { ...networkObjects(node), ...(await nftObjects(node)), ...bpfObjects(node), ...files(node) };
}

function networkObjects({ netns }: LabNode): KernelObjects {
  const netlink = kernel.netlink(netns);
  try {
    const ofPods = (address: string) => address.startsWith("10.88.");
    return {
      links: netlink.links().length,
      routes: netlink.routes().filter(({ destination }) => ofPods(destination)).length,
      neighbours: netlink.neighbours().filter(({ state, address }) => state === "permanent" && ofPods(address)).length,
    };
  } finally {
    netlink.close();
  }
}

type NftListed = Record<string, { elem?: unknown[] }>;

async function nftObjects({ netns }: LabNode): Promise<KernelObjects> {
  const { stdout } = await run("nsenter", [`--net=/run/netns/${netns.name}`, "nft", "-j", "list", "ruleset"], {
    maxBuffer: 1 << 28,
  });
  const { nftables } = JSON.parse(stdout) as { nftables: NftListed[] };
  const counts: KernelObjects = {};
  const add = (name: string, count: number) => {
    counts[name] = (counts[name] ?? 0) + count;
  };
  for (const listed of nftables) {
    for (const [kind, { elem = [] }] of Object.entries(listed)) {
      if (kind === "metainfo") continue;
      add(`nft ${kind}s`, 1);
      if (kind === "set" || kind === "map") add("nft elements", elem.length);
    }
  }
  return counts;
}

/** Maps that the agent writes. The programs write the others for packets, and remove from them when they are full. */
const WRITTEN_MAPS = [
  ...["interfaces", "workloads", "workload_shares", "routes", "ip_sets"],
  ...["frontends", "cluster_addresses", "backends", "source_ranges", "policies"],
];

function bpfObjects({ directory }: LabNode): KernelObjects {
  const root = join(directory, "bpf", "vendor");
  const counts: KernelObjects = {};
  for (const name of kernel.bpf.pins(root)) {
    const below = kernel.bpf.pins(join(root, name));
    const group = name.startsWith("maps_") ? "maps" : name;
    counts[`pins ${group}`] = (counts[`pins ${group}`] ?? 0) + below.length;
    if (group === "maps") for (const map of WRITTEN_MAPS) counts[`map ${map}`] = entriesOf(join(root, name, map));
  }
  return counts;
}

function entriesOf(pin: string): number {
  const map = kernel.bpf.openMap(pin);
  try {
    return map.entries().length;
  } finally {
    map.close();
  }
}

function files({ directory }: LabNode): KernelObjects {
  const below = (name: string) => {
    const entries = readdirSync(join(directory, name), { recursive: true, withFileTypes: true });
    return entries.filter((entry) => !entry.isDirectory()).length;
  };
  return { "files state": below("state"), "files run": below("run") };
}

/** A number for each column and time, printed as a table. */
export function figuresTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  return rows.map((row) => row.map((cell, column) => cell.padStart(widths[column] ?? 0)).join("  ")).join("\n");
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2;
}
