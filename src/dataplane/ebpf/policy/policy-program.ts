import { VERDICT, workLayout } from "../../../gen/bpf/layout.gen.ts";
import { Assembler, R0, R1, R2, R3, R6, R7, R9, R10, reg } from "../../../kernel/bpf/asm.ts";
import { MatchCode, type MatchMaps, writeKeyStart } from "./match-code.ts";
import { fallsThrough, type PolicyItem, type Target, targetsOf } from "./policy-items.ts";

/** Maps that policy programs use. */
export interface PolicyMaps extends MatchMaps {
  works: { readonly fd: number };
  steps: { readonly fd: number };
  policies: { readonly fd: number };
  /** The number a rule or a tier's end is remembered by. */
  hit(id: string): bigint;
}

/** Jumps reach 32,767 instructions; the ways out of a part come on top of this. */
const PART_INSTRUCTIONS = 24_000;
const MAX_RULES = 32;
const DROP = 2;

/** Where each part of a list begins. A list that fits is one part; a longer one is several programs that call each other. */
export function splitItems(items: PolicyItem[], maps: PolicyMaps, limit = PART_INSTRUCTIONS): PolicyItem[][] {
  const parts: PolicyItem[][] = [[]];
  let length = 0;
  for (const [index, item] of items.entries()) {
    const size = sizeOf(item, index, maps);
    if (length + size > limit && parts.at(-1)!.length > 0) {
      parts.push([]);
      length = 0;
    }
    parts.at(-1)!.push(item);
    length += size;
  }
  return parts;
}

function sizeOf(item: PolicyItem, index: number, maps: PolicyMaps): number {
  const asm = new Assembler();
  writeItem(asm, item, index, maps);
  return asm.length;
}

/** One part of a list as a program. `slots` are the places of all parts in the map of policies. */
export function assemblePart(parts: PolicyItem[][], part: number, slots: number[], maps: PolicyMaps): Buffer {
  const asm = new Assembler();
  const items = parts[part]!;
  const here = new Set(items.flatMap((item) => (item.kind === "group" ? [item.index] : [])));
  const asked = new Set(parts.slice(0, part).flat().flatMap(targetsOf));
  const entries = [...here].filter((group) => asked.has(group));
  writeEntry(asm, entries, maps);
  for (const [index, item] of items.entries()) writeItem(asm, item, index, maps);
  if (part + 1 < parts.length && fallsThrough(items.at(-1)!)) callPart(asm, slots[part + 1]!, 0, maps);
  writeExits(asm, items, { here, slotOf: (group) => slots[partOf(parts, group)]!, maps });
  return asm.build();
}

function partOf(parts: PolicyItem[][], group: number): number {
  return parts.findIndex((items) => items.some((item) => item.kind === "group" && item.index === group));
}

/** Finds `struct work`, and goes to the group another part asked for. */
function writeEntry(asm: Assembler, groups: number[], { works }: PolicyMaps): void {
  asm.mov(R6, reg(R1)).store("u32", R10, -4, 0);
  asm.mov(R2, reg(R10)).alu("add", R2, -4).loadMap(R1, works).call("mapLookup");
  asm.jumpIf("ne", R0, 0, "found").mov(R0, DROP).exit();
  asm.label("found").mov(R9, reg(R0));
  writeKeyStart(asm);
  if (groups.length > 0) asm.load("u32", R1, R9, workLayout.at.entry);
  for (const group of groups) asm.jumpIf("eq", R1, group + 1, `to ${group}`);
}

function writeItem(asm: Assembler, item: PolicyItem, index: number, maps: PolicyMaps): void {
  if (item.kind === "group") {
    asm.label(`to ${item.index}`);
    if (!item.unless) return;
    const inside = `inside ${index}`;
    asm.load("u32", R1, R9, workLayout.at.flags).jumpIf("set", R1, item.unless.flags, inside);
    asm.jump(`to ${item.unless.target}`).label(inside);
    return;
  }
  const miss = `miss ${index}`;
  if (item.kind === "rule") new MatchCode(asm, maps, miss).write(item.match, item.original);
  if (item.hit !== undefined) asm.loadWide(R7, maps.hit(item.hit));
  if (item.then === "next item") record(asm, `record ${index}`);
  else asm.jump(exitLabel(item));
  asm.label(miss);
}

function exitLabel(item: { hit: string | undefined; then: Target | "next item" }): string {
  return `${item.hit === undefined ? "to" : "hit"} ${item.then}`;
}

/** Code that rules share: remembering what hit, verdicts, and calls of other parts. */
function writeExits(
  asm: Assembler,
  items: PolicyItem[],
  { here, slotOf, maps }: { here: Set<number>; slotOf: (group: number) => number; maps: PolicyMaps },
): void {
  const decided = items.filter((item) => item.kind !== "group").filter((item) => item.then !== "next item");
  const hits = new Set(decided.filter((item) => item.hit !== undefined).map((item) => item.then as Target));
  for (const target of hits) {
    asm.label(`hit ${target}`);
    record(asm, `hit ${target} recorded`);
    asm.jump(`to ${target}`);
  }
  for (const target of new Set(items.flatMap(targetsOf))) {
    if (typeof target === "number") {
      if (here.has(target)) continue;
      asm.label(`to ${target}`);
      callPart(asm, slotOf(target), target + 1, maps);
    } else {
      asm.label(`to ${target}`);
      goBack(asm, target === "allow" ? VERDICT.VERDICT_ALLOW : VERDICT.VERDICT_DENY, maps);
    }
  }
}

/** Odd, so that no bit of what came before is lost; the order of the rules matters, so each one multiplies. */
const TRACE_FACTOR = 0x5bd1e995;

/** Appends r7 to the rules that were hit, as far as there is space; the count continues, and so does the number of the trace. */
function record(asm: Assembler, label: string): void {
  asm.load("u32", R1, R9, workLayout.at.rulesHit).jumpIf("ge", R1, MAX_RULES, label);
  asm.mov(R2, reg(R1)).alu("lsh", R2, 3).mov(R3, reg(R9)).alu("add", R3, reg(R2));
  asm.store("u64", R3, workLayout.at.rules, reg(R7)).label(label);
  asm.alu("add", R1, 1).store("u32", R9, workLayout.at.rulesHit, reg(R1));
  asm.load("u64", R1, R9, workLayout.at.trace).alu("xor", R1, reg(R7)).alu("mul", R1, TRACE_FACTOR);
  asm.store("u64", R9, workLayout.at.trace, reg(R1));
}

function callPart(asm: Assembler, slot: number, entry: number, { policies }: PolicyMaps): void {
  asm.store("u32", R9, workLayout.at.entry, entry);
  asm.mov(R1, reg(R6)).loadMap(R2, policies).mov(R3, slot).call("tailCall").mov(R0, DROP).exit();
}

/** Back to the calling program. If that cannot be reached, the packet is dropped. */
function goBack(asm: Assembler, verdict: number, { steps }: PolicyMaps): void {
  asm.store("u32", R9, workLayout.at.verdict, verdict).load("u32", R3, R9, workLayout.at.step);
  asm.mov(R1, reg(R6)).loadMap(R2, steps).call("tailCall").mov(R0, DROP).exit();
}
