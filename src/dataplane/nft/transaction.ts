/** From what is written to what is wanted, in one transaction: only what differs, nothing before what it refers to, nothing after. */
import { digestOf } from "./names.ts";
import { hookText, ruleText } from "./rule-text.ts";
import type { BaseHook, NftChain, NftSet, Ruleset } from "./ruleset.ts";

/** What is in the kernel, as far as it must be known. */
export interface Written {
  chains: ReadonlyMap<string, WrittenChain>;
  sets: ReadonlyMap<string, NftSet>;
}

export interface WrittenChain {
  base?: BaseHook;
  /** Of its rules; empty for a chain without any. */
  stamp: string;
}

export const NOTHING: Written = { chains: new Map(), sets: new Map() };

export interface Transaction {
  /** Empty: nothing to do. */
  commands: string[];
  /** Names of chains and sets it removes. */
  removed: string[];
  after: Written;
}

export function transaction(table: string, wanted: Ruleset, written: Written): Transaction {
  const reshaped = isReshaped(wanted, written);
  const from = reshaped ? NOTHING : written;
  const gone = {
    chains: [...from.chains.keys()].filter((name) => !wanted.chains.has(name)),
    sets: [...from.sets.values()].filter(({ name }) => !wanted.sets.has(name)),
  };
  const at = (kind: string, name: string) => `${kind} inet ${table} ${name}`;
  const newSets = [...wanted.sets.values()].filter(({ name }) => !from.sets.has(name));
  const newChains = [...wanted.chains.values()].filter(({ name }) => !from.chains.has(name));
  const changed = [...wanted.chains.values()].filter(
    (chain) => stampOf(chain) !== (from.chains.get(chain.name)?.stamp ?? ""),
  );
  const elements = [...wanted.sets.values()].map((set) => elementCommands(set, from.sets.get(set.name), at));
  const commands = [
    ...newSets.map((set) => `add ${at(set.kind, set.name)} ${declaration(set)}`),
    ...newChains.map(({ name, base }) => `add ${at("chain", name)}${base ? ` { ${hookText(base)} }` : ""}`),
    // Sets before the rules that ask them; rules before the maps that lead to them: all of it counts at once, but the library checks in order.
    ...elements.flatMap(({ remove }) => remove),
    ...changed.filter(({ name }) => from.chains.has(name)).map(({ name }) => `flush ${at("chain", name)}`),
    ...changed.flatMap((chain) => renderedRules(chain).map((text) => `add ${at("rule", chain.name)} ${text}`)),
    ...elements.flatMap(({ add }) => add),
    ...gone.chains.map((name) => `flush ${at("chain", name)}`),
    ...gone.sets.flatMap(({ kind, name }) => [`flush ${at(kind, name)}`, `delete ${at(kind, name)}`]),
    ...gone.chains.map((name) => `delete ${at("chain", name)}`),
  ];
  const clean = reshaped ? [`add table inet ${table}`, `delete table inet ${table}`] : [];
  return {
    commands: commands.length === 0 && !reshaped ? [] : [...clean, `add table inet ${table}`, ...commands],
    removed: [...gone.chains.map((name) => `chain ${name}`), ...gone.sets.map(({ kind, name }) => `${kind} ${name}`)],
    after: afterwards(wanted),
  };
}

function afterwards({ chains, sets }: Ruleset): Written {
  const written = [...chains].map(([name, chain]): [string, WrittenChain] => [
    name,
    { ...(chain.base ? { base: chain.base } : {}), stamp: stampOf(chain) },
  ]);
  return { chains: new Map(written), sets };
}

/** What cannot be changed in place: then the table is replaced in the same transaction, so nothing passes in between. */
function isReshaped(wanted: Ruleset, written: Written): boolean {
  const chain = [...wanted.chains.values()].some(({ name, base }) => {
    const there = written.chains.get(name);
    return there !== undefined && hookKey(there.base) !== hookKey(base);
  });
  const set = [...wanted.sets.values()].some((set) => {
    const there = written.sets.get(set.name);
    return there !== undefined && shapeOf(there) !== shapeOf(set);
  });
  return chain || set;
}

function shapeOf({ kind, type, interval, dynamic }: NftSet): string {
  return JSON.stringify([kind, type, interval, dynamic ?? null]);
}

function hookKey(base: BaseHook | undefined): string {
  return base ? `${base.type} ${base.hook} ${base.priority}` : "";
}

/** Of a dynamic set: as many as there can be interfaces of pods. */
const DYNAMIC = " size 65535; flags dynamic,timeout;";

function declaration({ type, interval, dynamic }: NftSet): string {
  return `{ type ${type};${interval ? " flags interval;" : ""}${dynamic === undefined ? "" : `${DYNAMIC} timeout ${dynamic}s;`} }`;
}

function elementCommands(set: NftSet, there: NftSet | undefined, at: (kind: string, name: string) => string) {
  const [before, now] = [there?.elements ?? new Map<string, string>(), set.elements];
  if (before === now) return { remove: [], add: [] };
  const stale = [...before].filter(([key, value]) => now.get(key) !== value).map(([key]) => key);
  const fresh = [...now].filter(([key, value]) => before.get(key) !== value);
  const texts = fresh.map(([key, value]) => (set.kind === "map" ? `${key} : ${value}` : key));
  const command = (verb: string, list: string[]) =>
    list.length === 0 ? [] : [`${verb} ${at("element", set.name)} { ${list.join(", ")} }`];
  return { remove: command("delete", stale), add: command("add", texts) };
}

interface Rendered {
  stamp: string;
  rules: string[];
}

const rendered = new WeakMap<NftChain, Rendered>();

function render(chain: NftChain): Rendered {
  const known = rendered.get(chain);
  if (known) return known;
  const [first, ...rest] = chain.rules;
  const plain = chain.rules.map((rule) => ruleText(rule));
  const stamp = first ? `${digestOf(plain.join("\n"), 12)}/${plain.length}` : "";
  const made = { stamp, rules: first ? [ruleText(first, stamp), ...rest.map((rule) => ruleText(rule))] : [] };
  rendered.set(chain, made);
  return made;
}

/** How a chain's rules are known when they are read back: by a digest in the first one's comment, and by their number. */
export function stampOf(chain: NftChain): string {
  return render(chain).stamp;
}

function renderedRules(chain: NftChain): string[] {
  return render(chain).rules;
}
