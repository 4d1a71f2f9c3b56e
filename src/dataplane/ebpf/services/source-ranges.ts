import { sourceRangeKeyLayout, sourceRangeLayout } from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import type { SourceRange } from "./service-rows.ts";
import type { Entries } from "./service-writes.ts";

const PRESENT = sourceRangeLayout.write({ present: 1 });
/** Bits of a key before the address: they are always compared. */
const BEFORE_ADDRESS = (sourceRangeKeyLayout.at.address - sourceRangeKeyLayout.at.service) * 8;

/** The service that is none: its ranges are of clients that are never answered straight. */
export const NO_SERVICE = 0;

/** From where load balancers' addresses may be asked, by service. */
export class SourceRanges {
  private readonly map: BpfMap;
  /** Keys that are in the map, as text of one byte a letter, by number of the service. */
  private readonly written = new Map<number, Set<string>>();

  constructor(map: BpfMap) {
    this.map = map;
  }

  get size(): number {
    return [...this.written.values()].reduce((sum, { size }) => sum + size, 0);
  }

  resync(): void {
    this.written.clear();
    for (const [key] of this.map.entries()) {
      this.add(key.readUInt32LE(sourceRangeKeyLayout.at.service), key.toString("latin1"));
    }
  }

  missing(service: number, ranges: readonly SourceRange[]): Entries {
    const there = this.written.get(service);
    const keys = ranges.map((range) => keyOf(service, range)).filter((key) => !there?.has(key.toString("latin1")));
    return { keys: Buffer.concat(keys), values: Buffer.concat(keys.map(() => PRESENT)) };
  }

  wrote(service: number, ranges: readonly SourceRange[]): void {
    for (const range of ranges) this.add(service, keyOf(service, range).toString("latin1"));
  }

  /** Removes the service's other ranges. */
  async keep(service: number, ranges: readonly SourceRange[]): Promise<number> {
    const there = this.written.get(service);
    if (!there) return 0;
    const kept = new Set(ranges.map((range) => keyOf(service, range).toString("latin1")));
    const others = [...there].filter((key) => !kept.has(key));
    await this.map.deleteMany(others.map((key) => Buffer.from(key, "latin1")));
    for (const key of others) there.delete(key);
    if (there.size === 0) this.written.delete(service);
    return others.length;
  }

  /** Removes the ranges of all other services; how many. */
  async keepOnly(services: ReadonlySet<number>): Promise<number> {
    let removed = 0;
    for (const service of [...this.written.keys()]) if (!services.has(service)) removed += await this.keep(service, []);
    return removed;
  }

  private add(service: number, key: string): void {
    const there = this.written.get(service);
    if (there) there.add(key);
    else this.written.set(service, new Set([key]));
  }
}

function keyOf(service: number, { prefixLength, address }: SourceRange): Buffer {
  return sourceRangeKeyLayout.write({ prefixLength: BEFORE_ADDRESS + prefixLength, service, address });
}
