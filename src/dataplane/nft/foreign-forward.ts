/**
 * A foreign filter whose forward policy is drop (container engines set one up) would drop what our policy allows: `accept` in one
 * table does not bind another. It is asked to trust our mark, by one rule with our name on it. Filters of the older iptables are out of reach.
 */
import type { NftObject, NftPort } from "../../kernel/nft/nft-port.ts";
import { MARK } from "./ruleset.ts";

const PLACES = [
  { family: "ip", table: "filter", chain: "FORWARD" },
  { family: "ip6", table: "filter", chain: "FORWARD" },
] as const;

export async function openForeignForward(nft: NftPort, owner: string): Promise<void> {
  for (const { place, objects } of await foreignChains(nft)) {
    const chain = objects.find((object) => object["chain"])?.["chain"] as { policy?: string } | undefined;
    if (chain?.policy !== "drop" || ourRules(objects, owner).length > 0) continue;
    const bits = `0x${MARK.allowed.toString(16)}`;
    await nft.run(`insert rule ${place} meta mark & ${bits} == ${bits} counter accept comment "${remark(owner)}"`);
  }
}

export async function closeForeignForward(nft: NftPort, owner: string): Promise<void> {
  for (const { place, objects } of await foreignChains(nft)) {
    for (const handle of ourRules(objects, owner)) await nft.run(`delete rule ${place} handle ${handle}`);
  }
}

async function foreignChains(nft: NftPort): Promise<{ place: string; objects: NftObject[] }[]> {
  const there = await nft.tables();
  const found: { place: string; objects: NftObject[] }[] = [];
  for (const { family, table, chain } of PLACES) {
    if (!there.some((one) => one.family === family && one.name === table)) continue;
    const place = `${family} ${table} ${chain}`;
    // The table may be there without the chain, and both may go between two questions.
    const objects = await nft.list(`list chain ${place}`).catch(() => []);
    if (objects.length > 0) found.push({ place, objects });
  }
  return found;
}

function ourRules(objects: readonly NftObject[], owner: string): number[] {
  return objects.flatMap((object) => {
    const rule = object["rule"] as { comment?: string; handle: number } | undefined;
    return rule?.comment === remark(owner) ? [rule.handle] : [];
  });
}

function remark(owner: string): string {
  return `${owner}: allowed by policy`;
}
