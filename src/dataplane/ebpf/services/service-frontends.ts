import { setImmediate } from "node:timers/promises";
import { type Frontend, frontendLayout } from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import type { Entries } from "./service-writes.ts";

export type FrontendEntry = readonly [key: string, value: Buffer];

/** The map of addresses and ports that services answer on, and what is in it. Keys are text of one byte a letter. */
export class ServiceFrontends {
  private readonly map: BpfMap;
  private readonly written = new Map<string, Buffer>();
  private last = 0;

  constructor(map: BpfMap) {
    this.map = map;
  }

  get size(): number {
    return this.written.size;
  }

  async resync(): Promise<void> {
    const found = new Map<string, Buffer>();
    for (const chunk of this.map.chunks(4096)) {
      for (const [key, value] of chunk) {
        found.set(key.toString("latin1"), Buffer.from(value));
        this.last = Math.max(this.last, value.readUInt32LE(frontendLayout.at.service));
      }
      await setImmediate();
    }
    this.written.clear();
    for (const [key, value] of found) this.written.set(key, value);
  }

  get(key: string): Frontend | undefined {
    const value = this.written.get(key);
    return value && frontendLayout.read(value);
  }

  keys(): Iterable<string> {
    return this.written.keys();
  }

  /** All lists a frontend points to. */
  lists(): Set<number> {
    const { clusterList, localList } = frontendLayout.at;
    return new Set([...this.written.values()].flatMap((v) => [v.readUInt32LE(clusterList), v.readUInt32LE(localList)]));
  }

  /** A number no service has or had in this life; 0 is none's. */
  nextNumber(): number {
    this.last = (this.last % 0xffff_ffff) + 1;
    return this.last;
  }

  missing(values: readonly FrontendEntry[]): Entries {
    const differing = values.filter(([key, value]) => !this.written.get(key)?.equals(value));
    return {
      keys: Buffer.from(differing.map(([key]) => key).join(""), "latin1"),
      values: differing.length === 1 ? differing[0]![1] : Buffer.concat(differing.map(([, value]) => value)),
    };
  }

  wrote(values: readonly FrontendEntry[]): void {
    for (const [key, value] of values) this.written.set(key, value);
  }

  /** After a failure the actual state is unknown. */
  resyncEntries(keys: Iterable<string>): void {
    for (const key of keys) {
      const value = this.map.lookup(Buffer.from(key, "latin1"));
      if (value) this.written.set(key, value);
      else this.written.delete(key);
    }
  }

  async remove(keys: readonly string[]): Promise<void> {
    const there = keys.filter((key) => this.written.has(key));
    await this.map.deleteMany(there.map((key) => Buffer.from(key, "latin1")));
    for (const key of there) this.written.delete(key);
  }
}
