import { flowLayout, NODE_WORD } from "../../gen/bpf/layout.gen.ts";
import type { BpfMap, BpfPort, MapEntry } from "../../kernel/bpf-port.ts";
import { word } from "./programs.ts";

/**
 * Takes over the flows of the layout before: as many bytes of each value as both have. What is new in a value is zero, which is how new
 * fields must be read; keys of another size are other keys, and are left.
 *
 * Programs of the layout before go on until ours stand in their place, and so do its flows: they are brought over more than once, each time
 * what was seen since the time before. Of two that differ the one seen last is right, so a life that was cut short is gone on with.
 */
export class FlowCarry {
  private readonly from: BpfMap;
  private readonly to: BpfMap;
  private since = 0n;

  constructor(bpf: BpfPort, from: string, map: (name: string) => BpfMap) {
    carryWords(bpf, from, map("node"));
    this.from = bpf.openMap(`${from}/flows`);
    this.to = map("flows");
  }

  async bring(): Promise<void> {
    if (this.from.info.keySize !== this.to.info.keySize) return;
    const since = this.since;
    // What programs call ktime is what Node calls hrtime.
    this.since = process.hrtime.bigint();
    for (const chunk of this.from.chunks(4096)) {
      const news = chunk.filter(([, value]) => seenAt(value) >= since).filter((entry) => this.isNewer(entry));
      await this.to.updateMany(news.map(([key, value]) => [key, this.carried(value)] as const));
    }
  }

  close(): void {
    this.from.close();
  }

  private isNewer([key, value]: MapEntry): boolean {
    const there = this.to.lookup(key);
    return there === undefined || seenAt(there) < seenAt(value);
  }

  private carried(value: Buffer): Buffer {
    const bytes = Buffer.alloc(this.to.info.valueSize);
    value.copy(bytes, 0, 0, Math.min(value.length, bytes.length));
    return bytes;
  }
}

/** Not where somebody who removed them was cut short. */
export function hasFlows(bpf: BpfPort, directory: string): boolean {
  const pins = bpf.pins(directory);
  return pins.includes("flows") && pins.includes("node");
}

/** Flows remember epochs: those must not be given again. Programs of the new layout act as those of the old one did. */
function carryWords(bpf: BpfPort, from: string, node: BpfMap): void {
  const isInUse = (node.lookup(word(NODE_WORD.NODE_EPOCH))?.readUInt32LE() ?? 0) > 0;
  if (isInUse) return;
  const before = bpf.openMap(`${from}/node`);
  try {
    for (const kept of [NODE_WORD.NODE_GENERATION, NODE_WORD.NODE_MODE, NODE_WORD.NODE_EPOCH]) {
      const value = kept < before.info.maxEntries ? before.lookup(word(kept)) : undefined;
      if (value) node.update(word(kept), value);
    }
  } finally {
    before.close();
  }
}

function seenAt(value: Buffer): bigint {
  return value.readBigUInt64LE(flowLayout.at.lastSeen);
}
