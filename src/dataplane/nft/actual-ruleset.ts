/** What nft lists of our table, as far as we must know it to go on from there. */
import type { NftObject } from "../../kernel/nft/nft-port.ts";
import { canonicalPrefix } from "./prefixes.ts";
import type { BaseHook, NftSet } from "./ruleset.ts";
import type { Written, WrittenChain } from "./transaction.ts";

/** Names nft puts for protocols where the system knows them. */
const PROTOCOLS: Record<string, string> = { tcp: "6", udp: "17", sctp: "132" };

interface ListedChain {
  name: string;
  type?: BaseHook["type"];
  hook?: BaseHook["hook"];
  prio?: number;
}

interface ListedRule {
  chain: string;
  comment?: string;
}

interface ListedSet {
  name: string;
  type: string | string[];
  flags?: string[];
  timeout?: number;
  elem?: unknown[];
}

export function readActualRuleset(objects: readonly NftObject[]): Written {
  const of = <T>(kind: string) => objects.flatMap((object) => (object[kind] ? [object[kind] as T] : []));
  const rules = new Map<string, ListedRule[]>();
  for (const rule of of<ListedRule>("rule")) {
    const list = rules.get(rule.chain);
    if (list) list.push(rule);
    else rules.set(rule.chain, [rule]);
  }
  const sets = [
    ...of<ListedSet>("set").map((set) => readSet(set, "set")),
    ...of<ListedSet>("map").map((set) => readSet(set, "map")),
  ];
  return {
    chains: new Map(of<ListedChain>("chain").map((chain) => [chain.name, readChain(chain, rules.get(chain.name))])),
    sets: new Map(sets.map((set) => [set.name, set])),
  };
}

function readChain({ type, hook, prio }: ListedChain, rules: readonly ListedRule[] = []): WrittenChain {
  const base = type && hook && prio !== undefined ? { base: { type, hook, priority: prio } } : {};
  const [stamp = "", count] = /^([0-9a-f]+\/(\d+))/.exec(rules[0]?.comment ?? "")?.slice(1) ?? [];
  if (rules.length === 0) return { ...base, stamp: "" };
  // Foreign rules, or fewer than we wrote: drift, to be written again.
  return { ...base, stamp: Number(count) === rules.length ? stamp : "?" };
}

function readSet({ name, type, flags, timeout = 0, elem = [] }: ListedSet, kind: "set" | "map"): NftSet {
  const types = Array.isArray(type) ? type : type.split(/\s*\.\s*/);
  // nft lists the flag `timeout`, which only dynamic sets of ours have; older releases leave `dynamic` out.
  const dynamic = flags?.some((flag) => flag === "dynamic" || flag === "timeout") ?? false;
  const elements = (dynamic ? [] : elem).map((item): [string, string] => {
    const [key, value] = kind === "map" ? (item as [unknown, unknown]) : [item, ""];
    return [keyText(key, types), verdictOf(value)];
  });
  return {
    name,
    kind,
    type: types.join(" . ") + (kind === "map" ? " : verdict" : ""),
    interval: flags?.includes("interval") ?? false,
    ...(dynamic ? { dynamic: timeout } : {}),
    elements: new Map(elements),
  };
}

type ListedKey =
  | string
  | number
  | { concat: ListedKey[] }
  | { prefix: { addr: string; len: number } }
  | { elem: { val: ListedKey } };

function keyText(given: unknown, types: readonly string[]): string {
  const key = given as ListedKey;
  if (typeof key !== "object") return partText(String(key), types[0]!);
  if ("concat" in key) return key.concat.map((part, index) => keyText(part, [types[index]!])).join(" . ");
  if ("elem" in key) return keyText(key.elem.val, types);
  if ("prefix" in key) return canonicalPrefix(`${key.prefix.addr}/${key.prefix.len}`);
  // A range that is no prefix is not of our making; as it cannot be wanted, it will go.
  return JSON.stringify(key);
}

function partText(text: string, type: string): string {
  if (type === "ifname") return `"${text}"`;
  if (type === "inet_proto") return PROTOCOLS[text] ?? text;
  return type.endsWith("_addr") ? canonicalPrefix(text) : text;
}

function verdictOf(value: unknown): string {
  if (typeof value === "string") return value;
  const target = (value as { goto?: { target: string } } | undefined)?.goto?.target;
  return target === undefined ? "?" : `goto ${target}`;
}
