/** Leaves eBPF without a model, a cluster or an agent: what the rollback watchdog does at its deadline, and half of what a rescue does. */
import { setTimeout as wait } from "node:timers/promises";
import type { Net } from "../calc/model.ts";
import { mapDirectory } from "../dataplane/ebpf/programs/programs.ts";
import { type ExportOptions, exportConntrack } from "../dataplane/switchover/export-conntrack.ts";
import { dropUnknownWhile } from "../dataplane/switchover/nat-keepalive.ts";
import { nextGeneration, pinnedGeneration, pinnedMode, turnOffPinned } from "../dataplane/switchover/node-mode.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { AgentDirectories } from "./config.ts";
import { TABLES } from "./dataplanes.ts";
import { type ArmedWatchdog, disarm, isOverdue, readArmed, recordReverted } from "./rollback-watchdog.ts";

const POLL_MS = 100;

/** Waits until the new plane is confirmed or time is over; whether it had to act. */
export async function runRollbackWatchdog(
  kernel: Kernel,
  directories: AgentDirectories,
  signal?: AbortSignal,
): Promise<boolean> {
  for (;;) {
    const armed = readArmed(directories);
    if (!armed || signal?.aborted) return false;
    if (isOverdue(armed)) {
      await rollBack(kernel, directories, armed);
      return true;
    }
    await wait(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Only where the old filter still stands: without it there would be no policy at all. */
async function rollBack(kernel: Kernel, directories: AgentDirectories, armed: ArmedWatchdog): Promise<void> {
  const nft = kernel.nft();
  const filter = (await nft.tables()).some(({ family, name }) => family === "inet" && name === TABLES.filter);
  nft.close();
  if (filter) {
    recordReverted(directories, armed);
    await leaveEbpf(kernel, directories, armed.pools);
  }
  disarm(directories);
}

/** What the programs carry becomes the kernel's as well as it can, and they stop; how many connections, undefined where nothing acted. */
export async function leaveEbpf(
  kernel: Kernel,
  { bpf: pinDirectory }: AgentDirectories,
  pools: readonly Net[],
): Promise<number | undefined> {
  const mode = pinnedMode(kernel.bpf, pinDirectory);
  let given: number | undefined;
  if (mode === "Active" || mode === "Draining") given = await exportAll(kernel, pinDirectory, pools).catch(() => 0);
  turnOffPinned(kernel.bpf, pinDirectory);
  return given;
}

async function exportAll(kernel: Kernel, pinDirectory: string, pools: readonly Net[]): Promise<number> {
  const path = `${mapDirectory(pinDirectory)}/flows`;
  const flows = kernel.bpf.openMap(path);
  const conntrack = kernel.conntrack();
  const nft = kernel.nft();
  const hold: ExportOptions["hold"] = (act) => dropUnknownWhile(nft, TABLES.keep, act);
  try {
    const generation = nextGeneration(pinnedGeneration(kernel.bpf, pinDirectory));
    const options: ExportOptions = { flows, conntrack, pools, generation, known: new Set(), hold };
    await exportConntrack(options, true);
    return (await exportConntrack(options, false)).exported;
  } finally {
    nft.close();
    conntrack.close();
    flows.close();
  }
}
