import { setImmediate } from "node:timers/promises";
import {
  CONNTRACK_FLAG,
  conntrackEntryLayout,
  fiveTupleLayout,
  NODE_FIELD,
  TOLD,
} from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap, BpfPort, MapEntry } from "../../../kernel/bpf/bpf-port.ts";
import { kernelTime } from "../../../kernel/kernel-time.ts";
import { reversedKey } from "../net-bytes.ts";
import { u32 } from "../programs/programs.ts";

/**
 * Takes over the flows of the layout before: as many bytes of each value as both have. What is new in a value is zero, which is how new
 * fields must be read; keys of another size are other keys, and are left.
 *
 * Programs of the layout before go on until ours stand in their place, and so do its flows: they are brought over more than once, each time
 * what was seen since the time before. Once programs of ours write flows too, of two under one key the one seen last is right: clients use
 * their ports again.
 */
export class ConntrackMigration {
  private readonly from: BpfMap;
  private readonly to: BpfMap;
  private isOurs: boolean;
  private sharedAt: bigint | undefined;
  private since = 0n;

  constructor(bpf: BpfPort, from: string, map: (name: string) => BpfMap) {
    // A life that was cut short may have put programs there.
    this.isOurs = !migrateNodeState(bpf, from, map("node"));
    this.from = bpf.openMap(`${from}/flows`);
    this.to = map("flows");
  }

  async copy(): Promise<void> {
    if (this.from.info.keySize !== this.to.info.keySize) return;
    const since = this.since;
    this.since = kernelTime();
    for (const chunk of this.from.chunks(4096)) {
      const news = chunk.filter(([, value]) => seenAt(value) >= since);
      if (this.isOurs) await this.to.updateMany(news.map(([key, value]) => [key, this.carried(value)] as const));
      else for (const entry of news) this.renewEntry(entry);
      await setImmediate();
    }
  }

  /** From here on programs of ours write flows too. */
  startSharing(): void {
    if (this.isOurs) this.sharedAt = kernelTime();
    this.isOurs = false;
  }

  close(): void {
    this.from.close();
  }

  /**
   * Both directions: one may have come over before the other was there. Not where a flow of our programs has these addresses and ports
   * since: its answers must not meet the questions of another.
   */
  private renewEntry([key, value]: MapEntry): void {
    const { flags, to } = conntrackEntryLayout.at;
    if ((value[flags]! & CONNTRACK_FLAG.CT_REPLY) !== 0) return;
    const isTranslated = (value[flags]! & CONNTRACK_FLAG.CT_NAT) !== 0;
    const answers = reversedKey(isTranslated ? value.subarray(to, to + fiveTupleLayout.size) : key);
    const answer = this.from.lookup(answers);
    const there = this.to.lookup(key);
    if (!answer || (there && !isSameTranslation(there, value) && this.isRight(there, value))) return;
    this.renew(key, value);
    this.renew(answers, answer);
  }

  /** Nothing is waited for between looking and writing: programs write too. */
  private renew(key: Buffer, value: Buffer): void {
    const there = this.to.lookup(key);
    if (!there || !this.isRight(there, value)) this.to.update(key, this.carried(value));
  }

  /** What our programs have seen is right, whatever those of the layout before made of it since. */
  private isRight(there: Buffer, value: Buffer): boolean {
    const seen = seenAt(there);
    return seen >= seenAt(value) || (this.sharedAt !== undefined && seen >= this.sharedAt);
  }

  private carried(value: Buffer): Buffer {
    const bytes = Buffer.alloc(this.to.info.valueSize);
    value.copy(bytes, 0, 0, Math.min(value.length, bytes.length));
    if (value.length < conntrackEntryLayout.at.toldBytes) tellAll(bytes);
    return bytes;
  }
}

/** A layout without flow logs counted all of it before anybody asked: it is neither a new connection nor new packets. */
function tellAll(value: Buffer): void {
  const { packets, bytes, told, toldPackets, toldBytes } = conntrackEntryLayout.at;
  value[told] = TOLD.TOLD_STARTED;
  value.copy(value, toldPackets, packets, packets + 8);
  value.copy(value, toldBytes, bytes, bytes + 8);
}

/** Not if an interrupted removal left them. */
export function hasConntrack(bpf: BpfPort, directory: string): boolean {
  const pins = bpf.pins(directory);
  return pins.includes("flows") && pins.includes("node");
}

/** Conntrack entries hold epochs: those must not be reused. Programs of the new layout start in the mode of the old ones. Returns whether that was done before. */
function migrateNodeState(bpf: BpfPort, from: string, node: BpfMap): boolean {
  const isInUse = (node.lookup(u32(NODE_FIELD.NODE_EPOCH))?.readUInt32LE() ?? 0) > 0;
  if (isInUse) return true;
  const before = bpf.openMap(`${from}/node`);
  try {
    for (const kept of [NODE_FIELD.NODE_GENERATION, NODE_FIELD.NODE_MODE, NODE_FIELD.NODE_EPOCH]) {
      const value = kept < before.info.maxEntries ? before.lookup(u32(kept)) : undefined;
      if (value) node.update(u32(kept), value);
    }
  } finally {
    before.close();
  }
  return false;
}

/** Of two under one key: translated to the same. */
function isSameTranslation(one: Buffer, other: Buffer): boolean {
  const { to } = conntrackEntryLayout.at;
  return one.compare(other, to, to + fiveTupleLayout.size, to, to + fiveTupleLayout.size) === 0;
}

function seenAt(value: Buffer): bigint {
  return value.readBigUInt64LE(conntrackEntryLayout.at.lastSeen);
}
