import type { IpSet } from "../../../calc/model.ts";
import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import { MEMBER, memberKey } from "./set-members.ts";

interface HeldSet {
  kind: IpSet["kind"];
  members: Set<string>;
}

/**
 * All IP sets in the one map they share. Sets can be large, so what is there is not kept a second time: members are written as they come,
 * and `resync` compares with the kernel now and then.
 */
export class SetMap {
  private readonly map: BpfMap;
  private readonly sets = new Map<string, HeldSet>();

  constructor(map: BpfMap) {
    this.map = map;
  }

  get ids(): ReadonlySet<string> {
    return new Set(this.sets.keys());
  }

  /** The set has exactly these members; whether that is a change. */
  async put(id: string, kind: IpSet["kind"], members: readonly string[]): Promise<boolean> {
    const held = this.sets.get(id)?.members ?? new Set();
    const wanted = new Set(members);
    const add = members.filter((member) => !held.has(member));
    const remove = [...held].filter((member) => !wanted.has(member));
    if (add.length + remove.length === 0 && this.sets.has(id)) return false;
    await this.map.updateMany(add.map((member) => [memberKey(id, kind, member), MEMBER] as const));
    await this.map.deleteMany(remove.map((member) => memberKey(id, kind, member)));
    this.sets.set(id, { kind, members: wanted });
    return true;
  }

  async drop(id: string): Promise<void> {
    const set = this.sets.get(id);
    if (!set) return;
    await this.map.deleteMany([...set.members].map((member) => memberKey(id, set.kind, member)));
    this.sets.delete(id);
  }

  /** Reverts drift in the kernel; returns how many entries that are not desired were removed. */
  async resync(): Promise<number> {
    const missing = new Map<string, Buffer>();
    for (const [id, { kind, members }] of this.sets) {
      for (const member of members) {
        const key = memberKey(id, kind, member);
        missing.set(key.toString("latin1"), key);
      }
    }
    const left: Buffer[] = [];
    for (const chunk of this.map.chunks()) {
      for (const [key] of chunk) if (!missing.delete(key.toString("latin1"))) left.push(key);
    }
    await this.map.updateMany([...missing.values()].map((key) => [key, MEMBER] as const));
    await this.map.deleteMany(left);
    return left.length;
  }
}
