/**
 * Denials are counted where they are dropped, for flow logs. Each rule that drops puts its number into the packet's mark, which nothing reads any
 * more, and goes on to one chain, so that recording begins and ends with that chain alone: no counter of a rule is lost, and no rule is absent.
 */
import { digestOf } from "../names.ts";
import type { NftChain, NftRule, NftSet, Ruleset } from "../ruleset.ts";

const CHAIN = "denied";
/** Longer than an agent is away while its pod restarts; an element that expires has been read long before. */
const KEPT_SECONDS = 300;
const PORTED = [6, 17, 132];

/** Where packets are counted, and the parts of the key. In order: what does not fit into one is counted in the next, under a coarser key. */
export const DENIED_SETS = [
  { name: "denied4", family: 4, ports: true },
  { name: "denied6", family: 6, ports: true },
  { name: "denied4-no-port", family: 4, ports: false },
  { name: "denied6-no-port", family: 6, ports: false },
  { name: "denied-rules", family: undefined, ports: false },
] as const;
type DeniedSet = (typeof DENIED_SETS)[number];

const ADDRESS = {
  4: { set: "ipv4_addr", rule: "ip" },
  6: { set: "ipv6_addr", rule: "ip6" },
} as const;

export interface Denials {
  rules: Ruleset;
  /** What each number stands for. Two rules may have one number: a number has 32 bits. */
  causes: ReadonlyMap<number, readonly string[]>;
}

/** The ruleset, with each cause of a drop numbered. `recorded`: whether they are counted in the sets. */
export function withDenials({ chains, sets }: Ruleset, recorded: boolean): Denials {
  const causes = new Map<number, string[]>();
  const numbered = [...chains.values()].map((chain) => numberedChain(chain));
  for (const { causes: some } of numbered) {
    for (const cause of some) {
      const number = numberOf(cause);
      const known = causes.get(number) ?? [];
      if (!known.includes(cause)) causes.set(number, [...known, cause]);
    }
  }
  const own = recorded ? DENIED_SETS.map(setOf) : [];
  const all = [...numbered.map(({ chain }) => chain), recorded ? RECORDING : SILENT];
  return {
    rules: {
      chains: new Map(all.map((chain) => [chain.name, chain])),
      sets: new Map([...sets, ...own.map((set) => [set.name, set] as const)]),
    },
    causes,
  };
}

/** The same on every node and in every life of the agent, so that a restart writes no rule again. Never 0, which is a packet without a number. */
function numberOf(cause: string): number {
  return Number.parseInt(digestOf(cause, 8), 16) || 1;
}

interface Numbered {
  chain: NftChain;
  causes: readonly string[];
}

/** A chain that did not change stays the same value: comparing is then quick. */
const made = new WeakMap<NftChain, Numbered>();

function numberedChain(chain: NftChain): Numbered {
  const known = made.get(chain);
  if (known) return known;
  const causes = chain.rules.flatMap(({ denial, verdict }) =>
    denial !== undefined && verdict?.is === "drop" ? denial : [],
  );
  const result = { chain: causes.length === 0 ? chain : { ...chain, rules: chain.rules.map(numberedRule) }, causes };
  made.set(chain, result);
  return result;
}

function numberedRule(rule: NftRule): NftRule {
  const { denial, verdict } = rule;
  if (denial === undefined || verdict?.is !== "drop") return rule;
  return { ...rule, mark: { replace: numberOf(denial) }, verdict: { is: "goto", chain: CHAIN } };
}

const DROP: NftRule = { when: [], verdict: { is: "drop" } };
const SILENT: NftChain = { name: CHAIN, rules: [DROP] };
/** The last rule drops what no set could take: a rule that counts does not match then. */
const RECORDING: NftChain = { name: CHAIN, rules: [...DENIED_SETS.map(countingRule), DROP] };

function setOf({ name, family, ports }: DeniedSet): NftSet {
  const addresses = family === undefined ? [] : [ADDRESS[family].set, ADDRESS[family].set, "inet_proto"];
  const type = [...addresses, ...(ports ? ["inet_service"] : []), "mark"].join(" . ");
  return { name, kind: "set", type, interval: false, dynamic: KEPT_SECONDS, elements: new Map() };
}

function countingRule({ name, family, ports }: DeniedSet): NftRule {
  const ip = family === undefined ? undefined : ADDRESS[family].rule;
  const addresses = ip === undefined ? [] : [`${ip} saddr`, `${ip} daddr`, "meta l4proto"];
  const key = [...addresses, ...(ports ? ["th dport"] : []), "meta mark"].join(" . ");
  return {
    when: [
      ...(family === undefined ? [] : [{ on: "family", is: family } as const]),
      ...(ports ? [{ on: "protocol", among: PORTED } as const] : []),
      { on: "counted", set: name, key },
    ],
    verdict: { is: "drop" },
  };
}
