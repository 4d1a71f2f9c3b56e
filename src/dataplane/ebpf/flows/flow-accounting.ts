/** Flow logs of the eBPF plane: intervals begun and ended in the kernel's maps, and what is summed there read from them. */
import { setImmediate } from "node:timers/promises";
import {
  REASON,
  SUM_FLAG,
  type Sum,
  type SumKey,
  sumKeyLayout,
  sumLayout,
  TRACE_DIRECTION,
  tellingLayout,
  traceLayout,
  workLayout,
} from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import { kernelTime } from "../../../kernel/kernel-time.ts";
import type { FlowAccounting, FlowShed, FlowSum } from "../../flow-sums.ts";
import { errors } from "../errors.ts";
import { addressText } from "../net-bytes.ts";
import type { NodeState } from "../programs/node-state.ts";
import { u32 } from "../programs/programs.ts";
import type { FlowNames } from "./flow-names.ts";
import type { FlowSweep } from "./flow-sweep.ts";

/** The header of the link, which the programs count and nobody else does. */
const ETHERNET_BYTES = 14;
const MOST_INTERVAL = 2 ** 32 - 1;
const CHUNK = 1024;
/** Of the traces that are kept, half: then those nothing refers to are removed. */
const MANY_TRACES = 32_768;

export interface FlowAccountingOptions {
  map(name: string): BpfMap;
  node: NodeState;
  names: FlowNames;
  sweep: FlowSweep;
  /** Resolves when no program runs that ran at the call. */
  settled(): Promise<void>;
  /** What a program that is in use remembers a rule by. */
  isInUse(rule: bigint): boolean;
}

interface Trace {
  direction: number;
  rules: string[];
}

export class EbpfFlowAccounting implements FlowAccounting {
  private readonly options: FlowAccountingOptions;
  /** One thing at a time: two sweeps at once would say different things of what is live. */
  private last: Promise<unknown> = Promise.resolve();
  private readonly merged = new Map<number, number>();
  /** Packets that were counted and are in no sum when this life began to look, or more: what came meanwhile. */
  private missingAtFirst: bigint | undefined;
  private unattributed = 0;

  constructor(options: FlowAccountingOptions) {
    this.options = options;
  }

  intervals(): Promise<number[]> {
    return this.inTurn(async () => {
      const found = this.options.map("merged_sums").entries();
      const numbers = found.filter(([key]) => isMarker(key)).map(([key]) => intervalOf(key));
      return numbers.sort((a, b) => a - b);
    });
  }

  begin(interval: number): Promise<void> {
    return this.inTurn(() => this.beginNow(interval));
  }

  read(interval: number): Promise<FlowSum[]> {
    return this.inTurn(() => this.readNow(interval));
  }

  forget(interval: number): Promise<void> {
    return this.inTurn(async () => {
      if (interval === this.current) throw errors.EBPF_INTERVAL_RUNS(interval);
      await this.remove((key) => intervalOf(key) === interval);
      await this.removeTraces();
    });
  }

  shed(): FlowShed {
    const merged = [...this.merged.values()].reduce((sum, one) => sum + one, 0);
    return { merged, unattributed: this.unattributed };
  }

  stop(): Promise<void> {
    return this.inTurn(async () => {
      this.options.node.put("NODE_INTERVAL", 0);
      await this.options.settled();
      await this.remove(() => true);
      await removeWhere(this.options.map("traces"), () => true);
      this.missingAtFirst = undefined;
    });
  }

  /** Before something is removed that may have counted since the last time. Nothing while logs are off. */
  sweep(): Promise<void> {
    return this.inTurn(async () => {
      if (this.current !== 0) await this.sweepNow();
    });
  }

  close(): void {
    this.options.sweep.close();
  }

  private get current(): number {
    return this.options.node.get("NODE_INTERVAL");
  }

  private async beginNow(interval: number): Promise<void> {
    const { node, settled } = this.options;
    const before = this.current;
    if (interval === before) return;
    if (!Number.isInteger(interval) || interval <= before || interval > MOST_INTERVAL) {
      throw errors.EBPF_BAD_MODEL(`interval ${interval} of the flow logs after ${before}`);
    }
    // While they are off, a sweep only notes what was counted: connections that are there already are not new.
    const counted = this.counted();
    const sweep = await this.sweepNow();
    this.noteMissing(counted);
    if (before !== 0) this.mark(before, sweep);
    this.mark(interval, 0);
    node.put("NODE_INTERVAL", interval);
    // Who still adds to the interval before is gone then: it stays as it is.
    await settled();
  }

  private async sweepNow(): Promise<number> {
    const { node, sweep } = this.options;
    const number = (node.get("NODE_SWEEP") % MOST_INTERVAL) + 1;
    node.put("NODE_SWEEP", number);
    await sweep.run();
    return number;
  }

  /** That there is such an interval, also where nothing happens in it; `sweep`: the one that ended it. */
  private mark(interval: number, sweep: number): void {
    const [key, value] = [Buffer.alloc(sumKeyLayout.size), Buffer.alloc(sumLayout.size)];
    key.writeUInt32LE(interval, sumKeyLayout.at.interval);
    key[sumKeyLayout.at.flags] = SUM_FLAG.SUM_INTERVAL;
    value.writeUInt32LE(sweep, sumLayout.at.live);
    this.options.map("merged_sums").update(key, value);
  }

  /**
   * `counted` is older than what the sums have: what is missing then is missing, and packets between may hide as much.
   * Where a life begins it is the other way round. So a packet that comes meanwhile is never told as missing.
   */
  private noteMissing(counted: bigint): void {
    const told =
      this.packets("works", workLayout, workLayout.at.told) +
      this.packets("tellings", tellingLayout, tellingLayout.at.told);
    this.missingAtFirst ??= this.counted() - told;
    this.unattributed = Math.max(this.unattributed, Number(counted - told - this.missingAtFirst));
  }

  private counted(): bigint {
    return this.packets("works", workLayout, workLayout.at.counted);
  }

  private packets(map: "works" | "tellings", { size }: { size: number }, at: number): bigint {
    const parts = this.options.map(map).lookupEach(u32(0)) ?? [];
    return parts.reduce((sum, part) => (part.length < size ? sum : sum + part.readBigUInt64LE(at)), 0n);
  }

  private async readNow(interval: number): Promise<FlowSum[]> {
    if (interval === this.current) throw errors.EBPF_INTERVAL_RUNS(interval);
    const found: [SumKey, Sum][] = [];
    let [lastSweep, merged] = [0, 0];
    for (const name of ["sums", "merged_sums"]) {
      for (const chunk of this.options.map(name).chunks(CHUNK)) {
        for (const [bytes, value] of chunk) {
          if (intervalOf(bytes) !== interval) continue;
          if (isMarker(bytes)) {
            lastSweep = value.readUInt32LE(sumLayout.at.live);
            continue;
          }
          const sum = sumLayout.read(value);
          merged += sum.merged;
          found.push([sumKeyLayout.read(bytes), sum]);
        }
        await setImmediate();
      }
    }
    this.merged.set(interval, merged);
    const clock = { now: kernelTime(), time: Date.now() };
    const traces = new Map<bigint, Trace | undefined>();
    const sums: FlowSum[] = [];
    for (const [index, [key, sum]] of found.entries()) {
      if (index % CHUNK === CHUNK - 1) await setImmediate();
      const live = sum.sweep === lastSweep ? sum.live : 0;
      const told = this.decode(key, { ...sum, live }, { clock, traces });
      if (told.packets + told.replyPackets + told.started + told.ended + told.live > 0) sums.push(told);
    }
    return sums;
  }

  private decode(
    key: SumKey,
    sum: Sum,
    { clock, traces }: { clock: { now: bigint; time: number }; traces: Map<bigint, Trace | undefined> },
  ): FlowSum {
    const asked = [key.traceIn, key.traceOut].flatMap((number) => this.trace(number, traces) ?? []);
    const [packets, replyPackets] = [countOf(sum.packets), countOf(sum.replyPackets)];
    const isMerged = (key.flags & SUM_FLAG.SUM_MERGED) !== 0;
    return {
      source: addressOf(key.src, isMerged),
      destination: addressOf(key.dst, isMerged),
      destinationPort: key.dport,
      protocol: key.protocol,
      service: key.service === 0 ? undefined : this.options.names.service(key.service),
      verdict: key.reason === REASON.REASON_NONE ? "Allow" : "Deny",
      reason: key.reason === REASON.REASON_NONE ? undefined : reasonName(key.reason),
      egress: rulesOf(asked, TRACE_DIRECTION.TRACE_EGRESS),
      ingress: rulesOf(asked, TRACE_DIRECTION.TRACE_INGRESS),
      ...{ packets, bytes: countOf(sum.bytes) - ETHERNET_BYTES * packets },
      ...{ replyPackets, replyBytes: countOf(sum.replyBytes) - ETHERNET_BYTES * replyPackets },
      ...{ started: sum.started, ended: sum.ended, live: sum.live },
      lastSeen: clock.time - Number((clock.now - sum.lastSeen) / 1_000_000n),
    };
  }

  private trace(number: bigint, known: Map<bigint, Trace | undefined>): Trace | undefined {
    if (number === 0n) return undefined;
    if (known.has(number)) return known.get(number);
    const key = Buffer.alloc(8);
    key.writeBigUInt64LE(number);
    const value = this.options.map("traces").lookup(key);
    const trace = value && this.readTrace(value);
    known.set(number, trace);
    return trace;
  }

  private readTrace(value: Buffer): Trace {
    const { rules, first, hits, direction } = traceLayout.read(value);
    const names = rules.slice(first, first + hits).map((rule) => this.options.names.rule(rule) ?? "unknown");
    return { direction, rules: names };
  }

  private async remove(which: (key: Buffer) => boolean): Promise<void> {
    for (const name of ["sums", "merged_sums"]) await removeWhere(this.options.map(name), ([key]) => which(key));
  }

  /** A trace with a rule of no program can be of a connection that stays, or of a sum: they are kept until there are many. */
  private async removeTraces(): Promise<void> {
    const map = this.options.map("traces");
    let count = 0;
    for (const chunk of map.chunks(CHUNK)) count += chunk.length;
    if (count < MANY_TRACES) return;
    await removeWhere(map, ([, value]) => {
      const { rules, first, hits } = traceLayout.read(value);
      return rules.slice(first, first + hits).some((rule) => !this.options.isInUse(rule));
    });
  }

  private inTurn<T>(act: () => Promise<T>): Promise<T> {
    const done = this.last.then(act, act);
    this.last = done.catch(() => undefined);
    return done;
  }
}

/** A member of `enum reason`, without the word before that says it was dropped or rejected. */
function reasonName(number: number): string {
  const name = Object.entries(REASON).find(([key, value]) => value === number && /^(?:DROP|REJECT)_/.test(key))?.[0];
  return name === undefined ? `reason_${number}` : name.replace(/^(?:DROP|REJECT)_/, "").toLowerCase();
}

function rulesOf(asked: readonly Trace[], direction: number): string[] | undefined {
  const own = asked.filter((trace) => trace.direction === direction);
  return own.length === 0 ? undefined : own.flatMap(({ rules }) => rules);
}

function addressOf(bytes: Uint8Array, isMerged: boolean): string {
  return isMerged || bytes.every((byte) => byte === 0) ? "" : addressText(bytes);
}

/** A packet that was dropped after it was counted is taken off again, maybe in the next interval. */
function countOf(count: bigint): number {
  return Number(BigInt.asIntN(64, count));
}

function intervalOf(key: Buffer): number {
  return key.readUInt32LE(sumKeyLayout.at.interval);
}

function isMarker(key: Buffer): boolean {
  return (key[sumKeyLayout.at.flags]! & SUM_FLAG.SUM_INTERVAL) !== 0;
}

async function removeWhere(map: BpfMap, which: (entry: readonly [Buffer, Buffer]) => boolean): Promise<void> {
  for (const chunk of map.chunks(CHUNK)) {
    await map.deleteMany(chunk.filter(which).map(([key]) => key));
    await setImmediate();
  }
}
