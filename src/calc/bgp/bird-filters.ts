import { type Cidr, formatCidr, parseCidr } from "../../kit/ip.ts";
import type { Net } from "../model.ts";
import { isV4 } from "../nets.ts";
import type { BgpModel, BgpSession, FilterRule } from "./bgp-model.ts";

type Family = 4 | 6;

/** What no router has a reason to announce: a network of its own link, of every machine itself, or of nobody. */
const NEVER: Record<Family, readonly string[]> = {
  4: ["0.0.0.0/8{8,32}", "127.0.0.0/8+", "169.254.0.0/16+", "224.0.0.0/3+"],
  6: ["::/16{16,128}", "fe80::/10+", "ff00::/8+"],
};
const DEFAULT: Record<Family, string> = { 4: "0.0.0.0/0", 6: "::/0" };
/** An empty list is not in the daemon's language. */
const NOTHING = "false";

/** Functions that the filters of all sessions of one family share. */
export function prefixFunctions(model: BgpModel, family: Family): string[] {
  const of = (nets: readonly Net[]) => nets.filter((net) => isV4(net) === (family === 4));
  const pools = model.pools.filter(({ net }) => isV4(net) === (family === 4));
  const blocks = model.blocks.filter(({ net }) => isV4(net) === (family === 4));
  return [
    predicate(`never${family}`, `net ~ [ ${NEVER[family].join(", ")} ]`),
    predicate(`own_subnet${family}`, among(of(model.ownSubnets).map(within))),
    predicate(`in_pool${family}`, among(pools.map(({ net }) => within(net)))),
    // Not whole pools, nor anything between a pool and a block of it.
    predicate(`like_block${family}`, among(pools.map(({ net, blockSize }) => longer(net, blockSize)))),
    predicate(`service${family}`, among(of(model.serviceRanges).map(within))),
    predicate(`passed_on${family}`, among(of(model.passedOn).map(within))),
    predicate(`block${family}`, among(blocks.map(({ net }) => net))),
    ...toOwner(blocks, family),
    ...communities(model, family),
  ];
}

function predicate(name: string, is: string): string {
  return `function ${name}() { return ${is}; }`;
}

/** Whether a block of another node comes with that node as its next hop: nobody gains by announcing that. */
function toOwner(blocks: BgpModel["blocks"], family: Family): string[] {
  const byOwner = new Map<string, Net[]>();
  for (const { net, nextHop } of blocks) byOwner.set(nextHop, [...(byOwner.get(nextHop) ?? []), net]);
  return [
    `function to_owner${family}() {`,
    ...[...byOwner].map(([nextHop, nets]) => `  if bgp_next_hop = ${nextHop} then return ${among(nets)};`),
    "  return false;",
    "}",
  ];
}

function communities(model: BgpModel, family: Family): string[] {
  const rows = model.communities.filter(({ net }) => isV4(net) === (family === 4));
  return [
    `function communities${family}() {`,
    ...rows.flatMap(({ net, values }) => [
      `  if net ~ [ ${within(net)} ] then {`,
      ...values.map((value) => {
        const parts = value.split(":").map(Number);
        return `    ${parts.length === 3 ? "bgp_large_community" : "bgp_community"}.add((${parts.join(", ")}));`;
      }),
      "  }",
    ]),
    "  return true;",
    "}",
  ];
}

/**
 * From a router: nothing inside of the pools but blocks of other nodes, and those with the node itself as next hop, unless a rule accepts them. From
 * a node: what may be a block. From both no default route, unless a rule accepts it, and never a network of this node.
 */
export function importFilter(session: BgpSession): string[] {
  const { family: f, node, reflects } = session;
  const rules = session.imports.flatMap((rule) => ruleLines(rule, f, "accept;"));
  return [
    `filter import_${session.name} {`,
    `  if never${f}() || own_subnet${f}() then reject;`,
    ...(node !== null && reflects ? [] : [`  if service${f}() then reject;`]),
    `  if in_pool${f}() && ! ${node === null ? "block" : "like_block"}${f}() then reject;`,
    ...rules,
    `  if net = ${DEFAULT[f]} then reject;`,
    ...(node === null ? [`  if in_pool${f}() && ! to_owner${f}() then reject;`] : []),
    "  accept;",
    "}",
  ];
}

/** What the node announces itself; of a route reflector also what it has learned of the cluster. Rules can refuse each, and accept what was learned. */
export function exportFilter(session: BgpSession): string[] {
  const { family: f, reflects } = session;
  const announced = `proto = "announced${f}"`;
  return [
    `filter export_${session.name} {`,
    `  if ! (${announced}) && source != RTS_BGP then reject;`,
    ...session.exports.flatMap((rule) => ruleLines(rule, f, `{ communities${f}(); accept; }`)),
    `  if ${announced}${reflects ? ` || passed_on${f}()` : ""} then { communities${f}(); accept; }`,
    "  reject;",
    "}",
  ];
}

/** A rule of the other family matches nothing. */
function ruleLines(rule: FilterRule, family: Family, accept: string): string[] {
  const condition = ruleCondition(rule, family);
  const action = rule.action === "Accept" ? accept : "reject;";
  return condition === undefined ? [] : [condition === "" ? `  ${action}` : `  if ${condition} then ${action}`];
}

function ruleCondition({ cidr, matchOperator, prefixLength, source }: FilterRule, family: Family): string | undefined {
  const parts: string[] = [];
  if (cidr !== undefined) {
    const net = parseCidr(cidr);
    if (!net || (net.family.bits === 32) !== (family === 4)) return undefined;
    parts.push(comparison(net, matchOperator ?? "In", prefixLength ?? {}));
  }
  if (source === "RemotePeers") parts.push("source = RTS_BGP");
  return parts.join(" && ");
}

function comparison(net: Cidr, operator: string, { min, max }: { min?: number; max?: number }): string {
  const text = formatCidr(net);
  switch (operator) {
    case "Equal":
      return `net = ${text}`;
    case "NotEqual":
      return `net != ${text}`;
    default: {
      const from = Math.max(min ?? net.length, net.length);
      const to = max ?? net.family.bits;
      // Lengths that no prefix inside has.
      const set = from > to ? NOTHING : `net ~ [ ${text}{${from},${to}} ]`;
      return operator === "NotIn" ? `! (${set})` : set;
    }
  }
}

/** `if net ~ [ ... ] then reject;`, or nothing where there is nothing to compare with. */
export function inside(nets: readonly Net[], indent: string, action: string): string[] {
  return nets.length === 0 ? [] : [`${indent}if ${among(nets.map(within))} then ${action};`];
}

function among(patterns: readonly string[]): string {
  return patterns.length === 0 ? NOTHING : `net ~ [ ${[...new Set(patterns)].join(", ")} ]`;
}

/** The prefix and everything inside of it. */
function within(net: Net): string {
  return `${net}+`;
}

function longer(net: Net, from: number): string {
  const cidr = parseCidr(net)!;
  return `${net}{${Math.min(Math.max(from, cidr.length), cidr.family.bits)},${cidr.family.bits}}`;
}
