import type { RuleSummary } from "../../kernel/nft/rule-summary.ts";
import type { ActualRules, Observed } from "./actual-rules.ts";
import { IPTABLES_TABLES, isKernelChain, isProxyChain } from "./proxy-chains.ts";
import type { RunCommand } from "./run-command.ts";

/** The older iptables has no library: its own commands are asked, where they are installed. */
export async function findLegacyRules(run: RunCommand, glance: RuleSummary): Promise<Observed> {
  const looked: Observed = { found: [], left: [] };
  for (const family of [4, 6] as const) {
    const program = family === 4 ? "iptables-legacy" : "ip6tables-legacy";
    const ip = family === 4 ? "ip" : "ip6";
    const there = glance.legacyTables(family);
    for (const table of IPTABLES_TABLES.filter((name) => there.includes(name))) {
      const where = `${ip} ${table} (iptables-legacy)`;
      const { code, out, err } = await run([`${program}-save`, "-t", table]);
      if (code !== 0) {
        looked.left.push({ where, why: code === -1 ? `${program} is not installed here` : err.trim() });
        continue;
      }
      const rules = proxyRulesIn(out);
      if (rules.chains === 0 && rules.held.length === 0) continue;
      const text = `*${table}\n${rules.lines.join("\n")}\nCOMMIT\n`;
      const remove = async () => {
        const ended = await run([`${program}-restore`, "--noflush", "--wait", "10"], text);
        if (ended.code !== 0) throw new Error(ended.err.trim() || `${program}-restore ended with ${ended.code}`);
      };
      const { lines: _, ...counted } = rules;
      looked.found.push({ where, mode: "iptables", ...counted, remove });
    }
  }
  return looked;
}

/** What takes the proxy's rules out of a table as `iptables-save` shows it: jumps, then what is in its chains, then the chains. */
function proxyRulesIn(saved: string): Omit<ActualRules, "where" | "mode"> & { lines: string[] } {
  const own = [...saved.matchAll(/^:(\S+) /gm)].map(([, name = ""]) => name).filter(isProxyChain);
  const jumps: string[] = [];
  const held = new Set<string>();
  for (const line of saved.split("\n")) {
    const { chain, rest, target } = jumpOf(line);
    if (chain === "" || isProxyChain(chain) || !own.includes(target)) continue;
    if (isKernelChain(chain)) jumps.push(`-D ${chain} ${rest}`);
    else held.add(target);
  }
  return {
    jumps: jumps.length,
    chains: own.length - held.size,
    held: [...held],
    lines: [
      ...jumps,
      ...own.map((name) => `-F ${name}`),
      ...own.filter((name) => !held.has(name)).map((name) => `-X ${name}`),
    ],
  };
}

/** Whether a table as `iptables-save` shows it has a rule in one chain that jumps to the other. */
export function jumpsInSaved(saved: string, from: string, to: string): boolean {
  return saved.split("\n").some((line) => {
    const { chain, target } = jumpOf(line);
    return chain === from && target === to;
  });
}

function jumpOf(line: string): { chain: string; rest: string; target: string } {
  const [, chain = "", rest = ""] = /^-A (\S+) (.*)$/.exec(line) ?? [];
  // What people write in comments leads nowhere.
  const target = /(?:^| )-[jg] (\S+)/.exec(rest.replace(/"(?:[^"\\]|\\.)*"/g, ""))?.[1] ?? "";
  return { chain, rest, target };
}
