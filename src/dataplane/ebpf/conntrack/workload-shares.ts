/** What each pod of this node uses of the conntrack table, which all of them share, and what it may use. */
import { workloadShareLayout } from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import { u32 } from "../programs/programs.ts";

export interface Share {
  entries: number;
  limit: number;
}

/** By interface. The programs count what a pod opens; the agent writes limits, and counts as often as it looks through the table. */
export class WorkloadShares {
  private readonly map: BpfMap;
  private readonly limits = new Map<number, number>();

  constructor(map: BpfMap) {
    this.map = map;
    this.resync();
  }

  resync(): void {
    this.limits.clear();
    for (const [ifindex, { limit }] of this.read()) this.limits.set(ifindex, limit);
  }

  /** These interfaces and no others have this limit. What they use already stays counted. */
  wantOnly(interfaces: readonly number[], limit: number): void {
    for (const ifindex of interfaces) {
      if (this.limits.get(ifindex) === limit) continue;
      this.write(ifindex, { entries: this.entriesOf(ifindex), limit });
      this.limits.set(ifindex, limit);
    }
    const wanted = new Set(interfaces);
    for (const ifindex of [...this.limits.keys()].filter((one) => !wanted.has(one))) {
      this.map.delete(u32(ifindex));
      this.limits.delete(ifindex);
    }
  }

  read(): Map<number, Share> {
    return new Map(
      this.map.entries().map(([key, value]) => [
        key.readUInt32LE(),
        {
          entries: value.readInt32LE(workloadShareLayout.at.entries),
          limit: value.readInt32LE(workloadShareLayout.at.limit),
        },
      ]),
    );
  }

  /**
   * `counted` is what the table had, `before` what was counted when the count began: what the programs have added since comes on top. One that
   * was both seen and added is too much until the next count.
   */
  recount(counted: ReadonlyMap<number, number>, before: ReadonlyMap<number, Share>): void {
    for (const [ifindex, { entries, limit }] of this.read()) {
      const since = Math.max(0, entries - (before.get(ifindex)?.entries ?? 0));
      const exact = (counted.get(ifindex) ?? 0) + since;
      if (exact !== entries) this.write(ifindex, { entries: exact, limit });
    }
  }

  private entriesOf(ifindex: number): number {
    return this.map.lookup(u32(ifindex))?.readInt32LE(workloadShareLayout.at.entries) ?? 0;
  }

  /** The window of fragments begins again, which lets at most one second's worth more through. */
  private write(ifindex: number, { entries, limit }: Share): void {
    const value = workloadShareLayout.write({ entries, limit, fragmentSecond: 0n, fragments: 0 });
    this.map.update(u32(ifindex), value);
  }
}
