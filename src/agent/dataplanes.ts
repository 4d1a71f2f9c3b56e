import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Dataplane } from "../api/dataplane.ts";
import type { Refusal } from "../api/protocol/agent-report.ts";
import type { DataplaneDriver } from "../dataplane/contract.ts";
import { createEbpfDataplane } from "../dataplane/ebpf/ebpf-dataplane.ts";
import type { MapFill } from "../dataplane/ebpf/map-fill.ts";
import { fitToKernel } from "../dataplane/ebpf/programs/fit-to-kernel.ts";
import { type ObjectName, objectBytes } from "../dataplane/ebpf/programs/objects.ts";
import { disableUnprivilegedBpf, isMachine } from "../dataplane/ebpf/unprivileged-bpf.ts";
import { applyAndKeep, releaseHeld } from "../dataplane/net/keep-translations.ts";
import { createNodeNetwork } from "../dataplane/net/node-network.ts";
import type { Sysctls } from "../dataplane/net/sysctls.ts";
import { createNatTable } from "../dataplane/nft/nat-table.ts";
import { createNftDataplane } from "../dataplane/nft/nft-dataplane.ts";
import { type SwitchoverKernel, switchoverKernel } from "../dataplane/switchover/switchover-kernel.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { AgentConfig, AgentDirectories } from "./config.ts";
import type { OpenDataplane } from "./dataplane-switch.ts";
import type { ModelTarget } from "./model-loop.ts";
import { rememberedSysctls, restoreSysctls } from "./remembered-sysctls.ts";

/** Everything the model is carried out by on this node. */
export interface NodeDataplanes {
  open: Record<Dataplane, OpenDataplane>;
  kernel: SwitchoverKernel;
  /** Why eBPF cannot act here, found out by loading its programs; undefined: it can. */
  refusal: Refusal | undefined;
  /** Routes, neighbours and the overlay's device, whichever plane filters. */
  network: AgentNetwork;
}

/** A plane with maps that can be full. */
export interface MeasuredDataplane extends DataplaneDriver {
  fill(): MapFill[];
}

export interface AgentNetwork extends ModelTarget {
  close(): Promise<void>;
  /** Takes everything of ours off the node. */
  remove(): Promise<void>;
}

export const OVERLAY = "vxlan.vendor";
/** nftables tables, all of family `inet`: policy, SNAT of outgoing packets with eBPF, the table of a switchover, and that of a change of routes. */
export const TABLES = { filter: "vendor", nat: "vendor-nat", keep: "vendor-keep", reroute: "vendor-reroute" } as const;
/** In the state directory. */
const SYSCTLS_FILE = "sysctls.json";
/** In the run directory: what nftables counted for flow logs and is not kept elsewhere yet. */
const FLOWS_DIRECTORY = "flows-nftables";
const OBJECTS: readonly ObjectName[] = ["workload", "host"];

export async function openDataplanes(
  kernel: Kernel,
  { directories, cgroupV2Path }: Pick<AgentConfig, "directories"> & Partial<Pick<AgentConfig, "cgroupV2Path">>,
): Promise<NodeDataplanes> {
  return {
    open: {
      BPF: () => ebpfDataplane(kernel, directories, cgroupV2Path),
      Nftables: async () =>
        createNftDataplane({
          ...{ kernel, table: TABLES.filter, sysctls: nodeSysctls(directories) },
          flowLogs: { directory: join(directories.run, FLOWS_DIRECTORY) },
        }),
    },
    kernel: switchoverKernel({ kernel, pinDirectory: directories.bpf, tables: TABLES, overlay: OVERLAY }),
    refusal: await programsRefusal(kernel),
    network: agentNetwork(kernel, directories),
  };
}

/** The programs filter; whose address leaving packets take is nftables' in both planes. */
async function ebpfDataplane(
  kernel: Kernel,
  { bpf: pinDirectory, run }: AgentDirectories,
  cgroupPath: string | undefined,
): Promise<MeasuredDataplane> {
  // If bpffs is not mounted yet, pins would be refused.
  kernel.mounts.ensure("bpf", pinDirectory.replace(/\/[^/]+$/, ""));
  const programs = await createEbpfDataplane({
    // Where the maps are no longer, after the machine was started anew, the names are of no use either.
    ...{ kernel, pinDirectory, overlay: OVERLAY, startsOff: true, flowNames: join(run, "flow-names") },
    ...(isMachine() ? { disableUnprivileged: () => disableUnprivilegedBpf() } : {}),
    // It is not mounted where the node's own connections need not be translated.
    ...(cgroupPath !== undefined && existsSync(cgroupPath) ? { cgroup: cgroupPath } : {}),
  });
  const nat = createNatTable({ kernel, table: TABLES.nat });
  return {
    kind: "BPF",
    async apply(delta) {
      // A delta comes once: the one takes it though the other fails.
      try {
        return await programs.apply(delta);
      } finally {
        await nat.apply(delta);
      }
    },
    async resync() {
      await programs.resync();
      await nat.resync();
    },
    sweep: () => programs.sweep(),
    flows: () => programs.flows(),
    fill: () => programs.fill(),
    checkShares: async () => [...(await programs.checkShares()), ...(await nat.checkShares())],
    show: (table) => programs.show(table),
    async close() {
      await programs.close();
      nat.close();
    },
    async remove() {
      await programs.remove();
      await nat.remove();
    },
  };
}

function agentNetwork(kernel: Kernel, directories: AgentDirectories): AgentNetwork {
  const plain = sysctlsBelow(directories.sysctl);
  const held = { kernel, table: TABLES.reroute };
  let isFirst = true;
  const network = createNodeNetwork({ kernel, overlay: OVERLAY, sysctls: nodeSysctls(directories) });
  return {
    async apply(delta) {
      if (isFirst) await releaseHeld(held);
      isFirst = false;
      return await applyAndKeep(network, delta, held);
    },
    resync: async () => void network.resync(),
    sweep: async () => network.sweep(),
    close: async () => network.close(),
    async remove() {
      await releaseHeld(held);
      await network.remove();
      restoreSysctls(plain, join(directories.state, SYSCTLS_FILE));
    },
  };
}

function nodeSysctls({ state, sysctl }: AgentDirectories): Sysctls {
  return rememberedSysctls(sysctlsBelow(sysctl), join(state, SYSCTLS_FILE));
}

/** A container's own are often read-only; the node's are mounted in addition. */
function sysctlsBelow(directory: string): Sysctls {
  return {
    read: (path) =>
      existsSync(`${directory}/${path}`) ? readFileSync(`${directory}/${path}`, "utf8").trim() : undefined,
    write(path, value) {
      const there = existsSync(`${directory}/${path}`);
      if (there) writeFileSync(`${directory}/${path}`, value);
      return there;
    },
  };
}

/** By trying, as the plane would: versions lie. What is loaded here is let go at once. */
async function programsRefusal(kernel: Kernel): Promise<Refusal | undefined> {
  try {
    const { configuration, load } = fitToKernel(await kernel.features(), kernel.bpf);
    const options = { ...load, variables: configuration, smallestTables: true };
    for (const name of OBJECTS) kernel.loadObject(objectBytes(name), options).close();
    return undefined;
  } catch (error) {
    const [first = ""] = (error instanceof Error ? error.message : String(error)).split("\n", 1);
    return { code: "EbpfProgramsRefused", why: first };
  }
}
