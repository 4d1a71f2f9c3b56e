import type { NftObject, NftPort } from "../../kernel/nft/nft-port.ts";
import type { Observed, RemovableRules } from "./actual-rules.ts";
import { IPTABLES_TABLES, isKernelChain, isProxyChain, PROXY_TABLE } from "./proxy-chains.ts";

interface Chain {
  family: string;
  table: string;
  name: string;
}

interface Rule {
  chain: string;
  handle: number;
  expr?: { jump?: { target: string }; goto?: { target: string } }[];
}

/** The proxy's rules that nftables knows: its own table, and what it wrote with the newer iptables. */
export async function findNftRules(nft: NftPort): Promise<Observed> {
  const tables = await nft.tables();
  const found: RemovableRules[] = [];
  for (const family of ["ip", "ip6"]) {
    const here = tables.filter((table) => table.family === family).map(({ name }) => name);
    const shared = here.filter((name) => (IPTABLES_TABLES as readonly string[]).includes(name));
    if (shared.length === 0 && !here.includes(PROXY_TABLE)) continue;
    const chains = await chainsOf(nft, family);
    if (here.includes(PROXY_TABLE)) found.push(ownTable(nft, family, chains));
    for (const table of shared) {
      const inTable = chains.filter((chain) => chain.table === table);
      const rules = await sharedTable(nft, { family, table }, inTable);
      if (rules) found.push(rules);
    }
  }
  return { found, left: [] };
}

function ownTable(nft: NftPort, family: string, chains: readonly Chain[]): RemovableRules {
  return {
    where: `${family} ${PROXY_TABLE} (nftables)`,
    mode: "nftables",
    jumps: 0,
    chains: chains.filter(({ table }) => table === PROXY_TABLE).length,
    held: [],
    // Declared first, so that one that went meanwhile is no mistake.
    remove: () => nft.run(`table ${family} ${PROXY_TABLE}\ndelete table ${family} ${PROXY_TABLE}\n`),
  };
}

async function chainsOf(nft: NftPort, family: string): Promise<Chain[]> {
  return (await nft.list(`list chains ${family}`)).flatMap((object) => (object["chain"] as Chain | undefined) ?? []);
}

async function sharedTable(
  nft: NftPort,
  { family, table }: { family: string; table: string },
  chains: readonly Chain[],
): Promise<RemovableRules | undefined> {
  const own = chains.filter(({ name }) => isProxyChain(name)).map(({ name }) => name);
  if (own.length === 0) return undefined;
  const place = `${family} ${table}`;
  const jumps: Rule[] = [];
  const held = new Set<string>();
  for (const { name } of chains) {
    if (isProxyChain(name)) continue;
    for (const { rule, target } of (await nft.list(`list chain ${place} ${name}`)).flatMap(leading)) {
      if (!own.includes(target)) continue;
      if (isKernelChain(name)) jumps.push(rule);
      else held.add(target);
    }
  }
  const commands = [
    ...jumps.map(({ chain, handle }) => `delete rule ${place} ${chain} handle ${handle}`),
    ...own.map((name) => `flush chain ${place} ${name}`),
    ...own.filter((name) => !held.has(name)).map((name) => `delete chain ${place} ${name}`),
  ];
  return {
    where: `${place} (iptables-nft)`,
    mode: "iptables",
    ...{ jumps: jumps.length, chains: own.length - held.size, held: [...held] },
    remove: () => nft.run(`${commands.join("\n")}\n`),
  };
}

/** Whether a chain that is there has a rule that jumps to the other. */
export async function jumpsInNft(nft: NftPort, chain: string, to: string): Promise<boolean> {
  return (await nft.list(`list chain ${chain}`)).flatMap(leading).some(({ target }) => target === to);
}

function leading(object: NftObject): { rule: Rule; target: string }[] {
  const rule = object["rule"] as Rule | undefined;
  const targets = (rule?.expr ?? []).flatMap(({ jump, goto }) => jump?.target ?? goto?.target ?? []);
  return rule ? targets.map((target) => ({ rule, target })) : [];
}
