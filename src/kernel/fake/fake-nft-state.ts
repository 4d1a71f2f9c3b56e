/** The fake's nftables state, and how a transaction changes it. Rules are kept as text: the fake does not evaluate packets. */
import { splitList, splitStatements, tokens } from "./fake-nft-text.ts";

export interface FakeNftRule {
  readonly handle: number;
  readonly text: string;
}

export interface FakeNftChain {
  /** `type filter hook input priority 0; policy accept;`, or nothing for a chain that is only jumped to. */
  readonly hook: string;
  rules: FakeNftRule[];
}

export interface FakeNftSet {
  readonly kind: "set" | "map";
  readonly description: string;
  /** By key; of a map, what it maps to. */
  readonly elements: Map<string, string>;
}

export interface FakeNftTable {
  readonly family: string;
  readonly name: string;
  readonly chains: Map<string, FakeNftChain>;
  readonly sets: Map<string, FakeNftSet>;
}

type Tables = Map<string, FakeNftTable>;

const FAMILIES = ["ip", "ip6", "inet", "arp", "bridge", "netdev"];
const VERBS = ["add", "create", "insert", "replace", "delete", "destroy", "flush", "reset", "rename"];

/** Why a transaction was refused, in nft's words. */
export class NftRefusal extends Error {}

const MISSING = "Could not process rule: No such file or directory";
const THERE = "Could not process rule: File exists";
const BUSY = "Could not process rule: Device or resource busy";

let handles = 0;

export function copyTables(tables: Tables): Tables {
  return structuredClone(tables);
}

/** Changes the tables given; a refusal leaves them half changed, so they are a copy. */
export function applyCommands(tables: Tables, commands: string): void {
  for (const statement of splitStatements(commands)) {
    if (statement === "flush ruleset") tables.clear();
    else applyStatement(tables, statement);
  }
  for (const table of tables.values()) checkReferences(table);
}

function applyStatement(tables: Tables, statement: string): void {
  const first = tokens(statement, 1)[0]!;
  const verb = VERBS.includes(first) ? first : "add";
  const rest = VERBS.includes(first) ? statement.slice(first.length).trim() : statement;
  const [kind, ...more] = tokens(rest, 2);
  const family = FAMILIES.includes(more[0] ?? "") ? more[0]! : "ip";
  const afterKind = rest.slice(kind!.length).trim();
  const named = FAMILIES.includes(more[0] ?? "") ? afterKind.slice(family.length).trim() : afterKind;
  const [tableName] = tokens(named, 1);
  if (!tableName) throw new NftRefusal(`syntax error: ${statement}`);
  const name = tableName.replace(/\{.*/s, "");
  const argument = named.slice(name.length).trim();
  if (kind === "table") {
    applyTable(tables, verb, family, name, argument);
    return;
  }
  const table = tables.get(`${family} ${name}`);
  if (!table) {
    if (verb === "destroy") return;
    throw new NftRefusal(`${MISSING}: ${statement}`);
  }
  applyInTable(table, verb, kind!, argument, statement);
}

function applyTable(tables: Tables, verb: string, family: string, name: string, block: string): void {
  const key = `${family} ${name}`;
  const there = tables.get(key);
  if (verb === "add" || verb === "create") {
    if (there && verb === "create") throw new NftRefusal(THERE);
    const table = there ?? { family, name, chains: new Map(), sets: new Map() };
    tables.set(key, table);
    for (const item of splitStatements(inside(block))) {
      const [kind] = tokens(item, 1);
      if (["chain", "set", "map"].includes(kind!))
        applyInTable(table, "add", kind!, item.slice(kind!.length).trim(), item);
    }
  } else if (verb === "flush") {
    if (!there) throw new NftRefusal(MISSING);
    for (const chain of there.chains.values()) chain.rules = [];
  } else if (there) tables.delete(key);
  else if (verb !== "destroy") throw new NftRefusal(MISSING);
}

function applyInTable(table: FakeNftTable, verb: string, kind: string, argument: string, statement: string): void {
  const [first] = tokens(argument, 1);
  const name = (first ?? "").replace(/\{.*/s, "");
  const rest = argument.slice(name.length).trim();
  switch (kind) {
    case "chain":
      applyChain(table, verb, name, inside(rest));
      break;
    case "rule":
      applyRule(table, verb, name, rest, statement);
      break;
    case "set":
    case "map":
      applySet(table, verb, kind, name, inside(rest));
      break;
    case "element":
      applyElements(table, verb, name, inside(rest), statement);
      break;
    default:
      throw new NftRefusal(`the fake knows no ${kind}: ${statement}`);
  }
}

function applyChain(table: FakeNftTable, verb: string, name: string, body: string): void {
  const there = table.chains.get(name);
  if (verb === "add" || verb === "create") {
    if (there && verb === "create") throw new NftRefusal(THERE);
    const parts = splitStatements(body);
    const isHook = (part: string) => /^(?:type|policy|comment|flags)\b/.test(part);
    const hook = parts.filter(isHook).join("; ");
    const chain = there ?? { hook, rules: [] };
    table.chains.set(name, chain);
    for (const text of parts.filter((part) => !isHook(part))) chain.rules.push({ handle: ++handles, text });
  } else if (!there) {
    if (verb !== "destroy") throw new NftRefusal(MISSING);
  } else if (verb === "flush") there.rules = [];
  else {
    const refers = new RegExp(`\\b(?:jump|goto) ${name}(?![\\w-])`);
    const others = [...table.chains].filter(([other]) => other !== name).flatMap(([, chain]) => chain.rules);
    const mapped = [...table.sets.values()].flatMap((set) => [...set.elements.values()]);
    if ([...others.map(({ text }) => text), ...mapped].some((text) => refers.test(text))) throw new NftRefusal(BUSY);
    table.chains.delete(name);
  }
}

function applyRule(table: FakeNftTable, verb: string, chainName: string, text: string, statement: string): void {
  const chain = table.chains.get(chainName);
  if (!chain) throw new NftRefusal(`${MISSING}: ${statement}`);
  const handle = Number(/^(?:handle|position) (\d+)/.exec(text)?.[1] ?? 0);
  const body = text.replace(/^(?:handle|position|index) \d+ ?/, "");
  const at = chain.rules.findIndex((rule) => rule.handle === handle);
  if (handle !== 0 && at < 0) throw new NftRefusal(`${MISSING}: ${statement}`);
  const rule = { handle: ++handles, text: body };
  if (verb === "delete" || verb === "destroy") chain.rules.splice(at, 1);
  else if (verb === "replace") chain.rules.splice(at, 1, rule);
  else if (verb === "insert") chain.rules.splice(handle === 0 ? 0 : at, 0, rule);
  else chain.rules.splice(handle === 0 ? chain.rules.length : at + 1, 0, rule);
}

function applySet(table: FakeNftTable, verb: string, kind: "set" | "map", name: string, body: string): void {
  const there = table.sets.get(name);
  if (verb === "add" || verb === "create") {
    if (there && verb === "create") throw new NftRefusal(THERE);
    const parts = splitStatements(body);
    const isElements = (part: string) => /^elements\s*=/.test(part);
    const description = parts.filter((part) => !isElements(part)).join("; ");
    const set = there ?? { kind, description, elements: new Map<string, string>() };
    table.sets.set(name, set);
    for (const part of parts.filter(isElements)) addElements(set, inside(part.slice(part.indexOf("{"))));
  } else if (!there) {
    if (verb !== "destroy") throw new NftRefusal(MISSING);
  } else if (verb === "flush") there.elements.clear();
  else table.sets.delete(name);
}

function applyElements(table: FakeNftTable, verb: string, name: string, body: string, statement: string): void {
  const set = table.sets.get(name);
  if (!set) throw new NftRefusal(`${MISSING}: ${statement}`);
  if (verb === "add" || verb === "create") {
    addElements(set, body);
    return;
  }
  for (const [key] of splitList(body)) {
    if (!set.elements.delete(key) && verb !== "destroy") throw new NftRefusal(`${MISSING}: ${statement}`);
  }
}

function addElements(set: FakeNftSet, body: string): void {
  for (const [key, value] of splitList(body)) {
    if (set.kind === "map" && set.elements.has(key) && set.elements.get(key) !== value) throw new NftRefusal(THERE);
    set.elements.set(key, value);
  }
}

/** Sets and chains a rule names must be there, as in the kernel. */
function checkReferences(table: FakeNftTable): void {
  const texts = [...table.chains.values()].flatMap((chain) => chain.rules.map(({ text }) => text));
  const mapped = [...table.sets.values()].flatMap((set) => [...set.elements.values()]);
  for (const text of [...texts, ...mapped]) {
    const bare = text.replace(/"[^"]*"/g, '""');
    for (const [, set] of bare.matchAll(/@([\w-]+)/g)) {
      // `@nh,0,8` reads raw bytes of a packet; a set has no comma.
      if (!table.sets.has(set!) && !/@(?:nh|th|ll|ih),/.test(bare)) throw new NftRefusal(`${MISSING}: @${set}`);
    }
    for (const [, chain] of bare.matchAll(/\b(?:jump|goto) ([\w-]+)/g)) {
      if (!table.chains.has(chain!)) throw new NftRefusal(`${MISSING}: ${chain}`);
    }
  }
}

/** What is between the outermost braces. */
function inside(block: string): string {
  const [from, to] = [block.indexOf("{"), block.lastIndexOf("}")];
  return from < 0 || to < 0 ? "" : block.slice(from + 1, to);
}
