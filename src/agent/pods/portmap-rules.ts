import { commandsIn, type RunCommand } from "../../dataplane/kube-proxy/run-command.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Netns } from "../../kernel/netns/netns-port.ts";
import { openRuleSummary } from "../../kernel/nft/rule-summary.ts";

const TABLE = "nat";
/** The chain of the plugin `portmap` that leads to one chain for each container. */
const DISPATCH = "CNI-HOSTPORT-DNAT";
const FAMILIES = [
  { family: 4, program: "iptables" },
  { family: 6, program: "ip6tables" },
] as const;

/**
 * Removes what the plugin `portmap` wrote for a container. It was in the chain of plugins of earlier releases; a pod that was made then is deleted
 * without it, and its rules would lead to whoever has its address next.
 */
export async function removePortmapRules(kernel: Kernel, containerId: string, netns?: Netns): Promise<string[]> {
  const summary = openRuleSummary(netns);
  try {
    const run = commandsIn(kernel, netns);
    const removed: string[] = [];
    for (const { family, program } of FAMILIES) {
      if (summary.hasChain(family, TABLE, DISPATCH)) {
        removed.push(...(await removeWith(run, `${program}-nft`, containerId)));
      }
      if (summary.legacyTables(family).includes(TABLE)) {
        removed.push(...(await removeWith(run, `${program}-legacy`, containerId)));
      }
    }
    return removed;
  } finally {
    summary.close();
  }
}

/** A comment names the container of each rule. Where the program is not installed, nothing of its tables is known. */
async function removeWith(run: RunCommand, program: string, containerId: string): Promise<string[]> {
  const { code, out } = await run([`${program}-save`, "-t", TABLE]);
  if (code !== 0) return [];
  const jumps = out.split("\n").flatMap((line) => {
    const [, rule, chain] = /^-A (CNI-HOSTPORT-DNAT .* -j (CNI-DN-[0-9a-f]+))$/.exec(line) ?? [];
    return rule && chain && line.includes(`id: \\"${containerId}\\"`) ? [{ rule, chain }] : [];
  });
  const chains = [...new Set(jumps.map(({ chain }) => chain))];
  if (chains.length === 0) return [];
  const lines = [
    ...jumps.map(({ rule }) => `-D ${rule}`),
    ...chains.map((chain) => `-F ${chain}`),
    ...chains.map((chain) => `-X ${chain}`),
  ];
  const ended = await run(
    [`${program}-restore`, "--noflush", "--wait", "10"],
    `*${TABLE}\n${lines.join("\n")}\nCOMMIT\n`,
  );
  if (ended.code !== 0) throw new Error(ended.err.trim() || `${program}-restore exited with ${ended.code}`);
  return chains;
}
