import { SERVICE_TABLE, type ServiceObjects } from "./service-nftables.ts";

/**
 * What turns services as they are written into services as they should be, and nothing else: commands for one transaction of nft, in an
 * order in which nothing is referred to before it is there or after it is gone.
 */
export function serviceTransaction(before: readonly ServiceObjects[], after: readonly ServiceObjects[]): string {
  return (["ip", "ip6"] as const).map((family) => ofFamily(family, before, after)).join("");
}

function ofFamily(family: "ip" | "ip6", before: readonly ServiceObjects[], after: readonly ServiceObjects[]): string {
  const was = together(before.filter((one) => one.family === family));
  const is = together(after.filter((one) => one.family === family));
  const at = (name: string) => `${family} ${SERVICE_TABLE} ${name}`;
  const type = `type ${family === "ip" ? "ipv4_addr" : "ipv6_addr"}; flags dynamic,timeout`;
  const commands: string[] = [];
  // How long a set remembers cannot be changed: it is made again, and its clients choose again.
  const oldSets = keysWhere(was.affinities, (name, seconds) => is.affinities.get(name) !== seconds);
  const newSets = keysWhere(is.affinities, (name, seconds) => was.affinities.get(name) !== seconds);
  const usesSet = (rules: readonly string[]) => rules.some((rule) => oldSets.some((set) => rule.includes(`@${set} `)));
  const oldElements = keysWhere(was.elements, (key, { text }) => is.elements.get(key)?.text !== text);
  const newElements = keysWhere(is.elements, (key, { text }) => was.elements.get(key)?.text !== text);
  const oldChains = keysWhere(was.chains, (name) => !is.chains.has(name));
  const changed = keysWhere(
    is.chains,
    (name, rules) => was.chains.get(name)?.join("\n") !== rules.join("\n") || usesSet(rules),
  );
  for (const name of changed) commands.push(`add chain ${at(name)}`, `flush chain ${at(name)}`);
  for (const name of oldChains) commands.push(`flush chain ${at(name)}`);
  for (const key of oldElements) {
    const element = was.elements.get(key)!;
    commands.push(`delete element ${at(element.set)} { ${element.key} }`);
  }
  for (const name of oldSets) commands.push(`delete set ${at(name)}`);
  for (const name of newSets) {
    commands.push(`add set ${at(name)} { ${type}; timeout ${is.affinities.get(name)}s; }`);
  }
  for (const name of changed) {
    for (const rule of is.chains.get(name) ?? []) commands.push(`add rule ${at(name)} ${rule}`);
  }
  for (const key of newElements) {
    const element = is.elements.get(key)!;
    commands.push(`add element ${at(element.set)} { ${element.text} }`);
  }
  for (const name of oldChains) commands.push(`delete chain ${at(name)}`);
  return commands.map((command) => `${command}\n`).join("");
}

interface Together {
  affinities: Map<string, number>;
  chains: Map<string, readonly string[]>;
  elements: Map<string, { set: string; key: string; text: string }>;
}

/** Where two services claim one address the first by name has it: the result is stable. */
function together(services: readonly ServiceObjects[]): Together {
  const all: Together = { affinities: new Map(), chains: new Map(), elements: new Map() };
  for (const { affinities, chains, elements } of services) {
    for (const [name, seconds] of affinities) all.affinities.set(name, seconds);
    for (const [name, rules] of chains) all.chains.set(name, rules);
    for (const [key, element] of elements) if (!all.elements.has(key)) all.elements.set(key, element);
  }
  return all;
}

function keysWhere<T>(map: ReadonlyMap<string, T>, holds: (key: string, value: T) => boolean): string[] {
  return [...map].filter(([key, value]) => holds(key, value)).map(([key]) => key);
}
