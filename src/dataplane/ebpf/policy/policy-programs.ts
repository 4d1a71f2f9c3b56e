import { createHash } from "node:crypto";
import type { BpfMap, BpfPort } from "../../../kernel/bpf/bpf-port.ts";
import { errors } from "../errors.ts";
import { FlowNames, ruleNumber } from "../flows/flow-names.ts";
import type { PolicyItem } from "./policy-items.ts";
import { assemblePart, type PolicyMaps, splitItems } from "./policy-program.ts";

/** A packet may pass 33 tail calls: two policies, and our own programs before, between and after them. */
const MAX_PARTS = 14;
const SLOT_BYTES = 4;

/** A policy in the kernel: all interfaces that run the same list share it. */
export interface PolicyProgram {
  /** What interfaces refer to it by. */
  readonly slot: number;
  readonly slots: readonly number[];
  /** Ids of the sets it looks into. */
  readonly sets: ReadonlySet<string>;
  /** Sets that only it needs: lists of prefixes too long to compare one by one. */
  readonly netSets: ReadonlyMap<string, readonly string[]>;
  /** The numbers it remembers rules by. */
  readonly rules: ReadonlySet<bigint>;
}

export interface PolicyProgramMaps {
  readonly works: BpfMap;
  readonly steps: BpfMap;
  readonly policies: BpfMap;
  readonly ip_sets: BpfMap;
}

/**
 * Policy programs by what they say. A program never changes: another list is another program in another slot, and an interface is moved
 * from one to the other by one write. A slot is used again only after a later `flush`, when no packet can be on its way to it any more.
 */
export class PolicyPrograms {
  private readonly bpf: BpfPort;
  private readonly maps: PolicyProgramMaps;
  private readonly programs = new Map<string, PolicyProgram & { users: number }>();
  private readonly names: FlowNames;
  private readonly hits = new Map<string, bigint>();
  private readonly taken = new Set<number>();
  private retired: number[] = [];
  private next = 1;

  /** Slots that are filled already belong to an earlier life of ours: interfaces may still use them, until `sweep`. */
  constructor(bpf: BpfPort, maps: PolicyProgramMaps, names = new FlowNames()) {
    this.bpf = bpf;
    this.maps = maps;
    this.names = names;
    for (const [key] of maps.policies.entries()) this.taken.add(key.readUInt32LE());
  }

  /** The program for the list that `key` names, loaded if it is not in use yet. Each acquire needs a release. */
  acquire(key: string, items: () => PolicyItem[], who: string): PolicyProgram {
    const found = this.programs.get(key);
    if (found) {
      found.users++;
      return found;
    }
    const made = { ...this.load(items(), who), users: 1 };
    this.programs.set(key, made);
    return made;
  }

  release(key: string): void {
    const program = this.programs.get(key);
    if (!program || --program.users > 0) return;
    this.programs.delete(key);
    this.retired.push(...program.slots);
  }

  /** Empties the slots that were given up before the last flush. */
  flush(givenUpBefore: readonly number[]): readonly number[] {
    for (const slot of givenUpBefore) this.empty(slot);
    const retired = this.retired;
    this.retired = [];
    return retired;
  }

  /** Empties the slots that this process does not use; how many. */
  sweep(): number {
    const used = new Set([...this.programs.values()].flatMap(({ slots }) => slots).concat(this.retired));
    const left = [...this.taken].filter((slot) => !used.has(slot));
    for (const slot of left) this.empty(slot);
    return left.length;
  }

  /** What a number in `struct work` or an event stands for. */
  ruleOf(hit: bigint): string | undefined {
    return this.names.rule(hit);
  }

  /** Whether a program that is in use may hit it. */
  isInUse(hit: bigint): boolean {
    return [...this.programs.values()].some(({ rules }) => rules.has(hit));
  }

  /** Sets the programs need in addition to the model's own. */
  netSets(): Map<string, readonly string[]> {
    return new Map([...this.programs.values()].flatMap(({ netSets }) => [...netSets]));
  }

  private load(items: PolicyItem[], who: string): PolicyProgram {
    const netSets = new Map<string, string[]>();
    const maps = this.policyMaps(netSets);
    const parts = splitItems(items, maps);
    const rules = items.flatMap((item) => (item.kind === "group" || item.hit === undefined ? [] : [item.hit]));
    // Before a packet can hit one.
    this.names.addRules(rules);
    if (parts.length > MAX_PARTS) throw errors.EBPF_POLICY_TOO_LARGE(who, parts.length, MAX_PARTS);
    const slots = parts.map(() => this.take());
    try {
      for (const part of parts.keys()) {
        const instructions = assemblePart(parts, part, slots, maps);
        this.install(slots[part]!, instructions);
      }
    } catch (error) {
      for (const slot of slots) this.empty(slot);
      throw error;
    }
    return {
      ...{ slot: slots[0]!, slots, netSets, rules: new Set(rules.map((id) => this.hitOf(id))) },
      sets: new Set([...setsOf(items), ...netSets.keys()]),
    };
  }

  private install(slot: number, instructions: Buffer): void {
    const program = this.bpf.loadProgram({ name: `policy_${slot}`, type: "schedCls", instructions, license: "GPL" });
    try {
      this.maps.policies.update(slotKey(slot), slotKey(program.fd));
    } finally {
      // The slot holds it now.
      program.close();
    }
  }

  private policyMaps(netSets: Map<string, string[]>): PolicyMaps {
    const { works, steps, policies, ip_sets: ipSets } = this.maps;
    return {
      works,
      steps,
      policies,
      ipSets,
      hit: (id) => this.hitOf(id),
      setOf: (nets) => {
        const id = `s${createHash("sha256").update(nets.join()).digest("hex").slice(0, 16)}`;
        netSets.set(id, nets);
        return id;
      },
    };
  }

  private hitOf(id: string): bigint {
    let hit = this.hits.get(id);
    if (hit === undefined) {
      hit = ruleNumber(id);
      this.hits.set(id, hit);
    }
    return hit;
  }

  private take(): number {
    const most = this.maps.policies.info.maxEntries;
    for (let tries = 1; tries < most; tries++) {
      const slot = this.next;
      this.next = this.next + 1 < most ? this.next + 1 : 1;
      if (this.taken.has(slot)) continue;
      this.taken.add(slot);
      return slot;
    }
    throw errors.EBPF_NO_SLOTS(most - 1);
  }

  private empty(slot: number): void {
    this.maps.policies.delete(slotKey(slot));
    this.taken.delete(slot);
  }
}

function slotKey(slot: number): Buffer {
  const key = Buffer.alloc(SLOT_BYTES);
  key.writeUInt32LE(slot);
  return key;
}

function setsOf(items: PolicyItem[]): string[] {
  return items.flatMap((item) => {
    if (item.kind !== "rule") return [];
    const { srcSets, notSrcSets, dstSets, notDstSets } = item.match;
    const { srcNamedPortSets, notSrcNamedPortSets, dstNamedPortSets, notDstNamedPortSets } = item.match;
    const lists = [srcSets, notSrcSets, dstSets, notDstSets, srcNamedPortSets, notSrcNamedPortSets];
    return [...lists, dstNamedPortSets, notDstNamedPortSets].flatMap((list) => list ?? []);
  });
}
