import { realKernel } from "../kernel/kernel.ts";
import type { AgentDirectories } from "./config.ts";
import { openDataplanes, TABLES } from "./dataplanes.ts";
import { leaveEbpf } from "./rollback.ts";
import { blockEbpf, disarm, unblockEbpf } from "./rollback-watchdog.ts";

/**
 * Takes a node that is cut off back to plain networking, without the API server: programs off and away, our tables away, connections given
 * to the kernel as well as it can. Pods keep their interfaces, addresses and routes. Says what it did. An agent that runs, or starts later,
 * stays with the nftables data plane until `rescueOver`.
 */
export async function rescueNode(directories: AgentDirectories): Promise<string[]> {
  const kernel = realKernel();
  const done: string[] = [];
  blockEbpf(directories, "the node was rescued; `vendor node rescue --over` ends that", "untilTold");
  done.push("eBPF stays disabled on this node until `vendor node rescue --over`");
  disarm(directories);
  const given = await leaveEbpf(kernel, directories, []);
  if (given !== undefined) done.push(`programs disabled; ${given} conntrack entries exported to the kernel`);
  if (kernel.bpf.pins(directories.bpf).length > 0) {
    const { open } = await openDataplanes(kernel, { directories });
    const programs = await open.BPF();
    await programs.remove();
    await programs.close();
    done.push(`programs and maps removed from ${directories.bpf}`);
  }
  const nft = kernel.nft();
  const there = new Set((await nft.tables()).map(({ family, name }) => `${family} ${name}`));
  for (const table of Object.values(TABLES).map((name) => `inet ${name}`)) {
    if (!there.has(table)) continue;
    await nft.run(`delete table ${table}`);
    done.push(`nftables table ${table} removed`);
  }
  nft.close();
  return done;
}

/** The agent may use eBPF again; whether that was news. */
export function rescueOver(directories: AgentDirectories): boolean {
  return unblockEbpf(directories);
}
