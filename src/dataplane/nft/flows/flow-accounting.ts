/** Flow logs of the nftables data plane: its thread counts, this names what was counted, and the files have both. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { DataplaneModel } from "../../../calc/model.ts";
import { hostEndpointOf } from "../../../calc/policy/hook-policy.ts";
import { type ConnectionSockets, openConnectionSockets } from "../../../kernel/conntrack/connection-counts.ts";
import { addressBytes } from "../../../kernel/netlink/netlink-message.ts";
import type { NetlinkPort } from "../../../kernel/netlink/netlink-port.ts";
import type { Netns } from "../../../kernel/netns/netns-port.ts";
import type { FlowAccounting, FlowShed, FlowSum } from "../../flow-sums.ts";
import { addressOf } from "../affected-connections.ts";
import type { HostInterface } from "../desired-ruleset.ts";
import { errors } from "../errors.ts";
import { CausesFile } from "./causes-file.ts";
import { CounterThread } from "./counter-thread.ts";
import type { SweepRequest } from "./flow-counter.ts";
import { asksSourcePorts, type FlowKey, FlowTexts } from "./flow-texts.ts";
import { type IntervalFile, IntervalFiles, ROW_COUNTS } from "./interval-files.ts";

export interface FlowLogOptions {
  /** In the run directory; nothing else is there. */
  directory: string;
  /** The counting thread (default: next to the program). */
  thread?: URL;
}

/** What the data plane gives. */
export interface FlowContext {
  model: DataplaneModel;
  netlink: NetlinkPort;
  netns: Netns | undefined;
  table: string;
  /** Another number after each change of the model. */
  epoch(): number;
  hostInterfaces(): HostInterface[];
  /** Whether denials are counted in the sets from here on. */
  record(on: boolean): Promise<void>;
  /** Whether the kernel counts what connections carry. */
  isCounting(): boolean;
}

/** An entry lives for ten seconds after its last packet at least, and an agent may be away for some of them. */
const MOST_MS = 5_000;
const LEAST_MS = 1_000;
/** A large table takes long to read: so much longer is the pause. */
const PAUSE = 50;
/** What was a pod's a moment ago is still counted: its connections end after it. */
const REMEMBERED_SWEEPS = 3;
/** Rows read at once, between which the event loop runs. */
const ROWS = 1_000;

export class NftFlowAccounting implements FlowAccounting {
  readonly causes: CausesFile;
  private readonly files: IntervalFiles;
  private readonly texts = new FlowTexts();
  private readonly context: FlowContext;
  private readonly thread: URL;
  private readonly directory: string;
  private counter: CounterThread | undefined;
  private sockets: (ConnectionSockets & { close(): void }) | undefined;
  private interval: number | undefined;
  private timer: NodeJS.Timeout | undefined;
  private turn: Promise<unknown> = Promise.resolve();
  private sweeps = 0;
  private soon = false;
  private closed = false;
  /** By address, the sweep that it was ours in last. */
  private readonly ours = new Map<string, number>();
  private sent = "";
  private lastShed: FlowShed = { merged: 0, unattributed: 0 };
  private shedBefore: FlowShed = { merged: 0, unattributed: 0 };

  constructor({ directory, thread }: FlowLogOptions, context: FlowContext) {
    this.directory = join(directory, "intervals");
    this.files = new IntervalFiles(this.directory);
    this.causes = new CausesFile(join(directory, "causes"));
    this.context = context;
    this.thread = thread ?? new URL("./flow-counter.js", import.meta.url);
  }

  /** Whether an earlier life of the agent counted, and did not stop. */
  wasCounting(): boolean {
    return existsSync(this.directory);
  }

  async intervals(): Promise<number[]> {
    return this.files.list().filter((interval) => this.files.read(interval)?.forgotten === false);
  }

  begin(interval: number): Promise<void> {
    return this.inTurn(async () => {
      if (!this.context.isCounting()) throw errors.NFT_FLOWS_NOT_COUNTED("nf_conntrack_acct is 0");
      if (this.interval === undefined) await this.context.record(true);
      await this.sweep(interval);
      this.interval = interval;
      this.schedule(LEAST_MS);
    });
  }

  read(interval: number): Promise<FlowSum[]> {
    return this.inTurn(async () => {
      if (interval === this.interval) throw errors.NFT_INTERVAL_OPEN(String(interval));
      const file = this.files.read(interval);
      return file ? await sumsOf(file) : [];
    });
  }

  forget(interval: number): Promise<void> {
    return this.inTurn(async () => {
      if (interval === this.interval) throw errors.NFT_INTERVAL_OPEN(String(interval));
      this.files.forget(interval);
    });
  }

  shed(): FlowShed {
    const { merged, unattributed } = this.lastShed;
    return { merged: this.shedBefore.merged + merged, unattributed: this.shedBefore.unattributed + unattributed };
  }

  async stop(): Promise<void> {
    await this.inTurn(async () => {
      await this.end();
      await this.context.record(false);
    });
    await this.discard();
  }

  /** The data plane goes: there is nothing to count any more, and its table, sets included, is deleted by it. */
  async discard(): Promise<void> {
    await this.inTurn(async () => {
      await this.end();
      this.interval = undefined;
      this.files.removeAll();
      this.causes.clear();
    });
  }

  /** Counts no more in this life, at once; the next one goes on from what is on disk. */
  async close(): Promise<void> {
    this.closed = true;
    await this.end();
  }

  /** Policy ended connections: what they carried before is to be apart from what is dropped of them. */
  sweepSoon(): void {
    if (this.soon || this.interval === undefined) return;
    this.soon = true;
    void this.inTurn(async () => {
      this.soon = false;
      if (this.interval !== undefined) await this.sweep();
    }).catch(() => undefined);
  }

  /** What it counts goes to the interval before; what is counted after it, to `next` if given. */
  private async sweep(next?: number): Promise<void> {
    const began = performance.now();
    try {
      const counter = await this.openCounter(next);
      if (!counter) return;
      const { fresh, merged, unattributed } = await counter.read(this.request(false));
      const texts = await this.texts.textsOf(fresh, () => this.flowModel());
      await counter.commit(texts, next);
      this.lastShed = { merged, unattributed };
    } catch (error) {
      // What it had not written is counted again from what is on disk.
      await this.end();
      throw error;
    } finally {
      const pause = Math.min(MOST_MS, Math.max(LEAST_MS, PAUSE * (performance.now() - began)));
      if (this.interval !== undefined) this.schedule(pause);
    }
  }

  /** Undefined: it was opened just now, and counts from here on into `next`. */
  private async openCounter(next: number | undefined): Promise<CounterThread | undefined> {
    if (this.counter) return this.counter;
    if (this.closed) throw errors.NFT_FLOWS_NOT_COUNTED("the data plane is closed");
    this.sockets = openConnectionSockets(this.context.netns);
    this.shedBefore = this.shed();
    this.lastShed = { merged: 0, unattributed: 0 };
    this.sent = "";
    const { dump, ended } = this.sockets;
    const { directory, thread, context } = this;
    this.counter = new CounterThread(thread, { sockets: { dump, ended }, directory, table: context.table });
    const interval = next ?? this.interval;
    const isKnown = await this.counter.load();
    if (isKnown) {
      // What was counted by nothing meanwhile belongs to what is counted now: the earlier ones may have been read.
      await this.counter.commit([], interval);
      return next === undefined ? this.counter : await this.counted(this.counter);
    }
    const { fresh } = await this.counter.read(this.request(true));
    await this.counter.commit(await this.texts.textsOf(fresh, () => this.flowModel()), interval);
    return undefined;
  }

  private async counted(counter: CounterThread): Promise<undefined> {
    const { fresh } = await counter.read(this.request(false));
    await counter.commit(await this.texts.textsOf(fresh, () => this.flowModel()), undefined);
    return undefined;
  }

  private request(onlyBase: boolean): SweepRequest {
    this.sweeps++;
    const addresses = this.addresses();
    const text = addresses.join(" ");
    const isNew = text !== this.sent;
    this.sent = text;
    const { model, epoch } = this.context;
    return {
      ...{ epoch: epoch(), asksSourcePorts: asksSourcePorts(model), onlyBase },
      ...(isNew ? { addresses: bytesOf(addresses) } : {}),
    };
  }

  /** Of pods and host endpoints of this node. */
  private addresses(): string[] {
    const { model } = this.context;
    for (const { addresses } of model.endpoints.values()) {
      for (const net of addresses) this.ours.set(addressOf(net), this.sweeps);
    }
    if (model.hostEndpoints.size > 0) {
      for (const link of this.context.hostInterfaces()) {
        if (!hostEndpointOf(model, link)) continue;
        for (const address of link.addresses) this.ours.set(addressOf(address), this.sweeps);
      }
    }
    for (const [address, sweep] of this.ours) if (sweep < this.sweeps - REMEMBERED_SWEEPS) this.ours.delete(address);
    return [...this.ours.keys()].sort();
  }

  private flowModel() {
    const { model, netlink, epoch } = this.context;
    return { model, netlink, epoch: epoch(), causesOf: (number: number) => this.causes.of(number) };
  }

  private schedule(ms: number): void {
    clearTimeout(this.timer);
    if (this.closed) return;
    this.timer = setTimeout(() => void this.inTurn(() => this.sweep()).catch(() => undefined), ms);
    this.timer.unref();
  }

  private async end(): Promise<void> {
    clearTimeout(this.timer);
    const { counter, sockets } = this;
    this.counter = undefined;
    this.sockets = undefined;
    // The thread first: it may be reading what is closed.
    await counter?.close();
    sockets?.close();
  }

  private inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.turn.then(act, act);
    this.turn = turn.catch(() => undefined);
    return turn;
  }
}

function bytesOf(addresses: readonly string[]): Uint8Array {
  const parts = addresses.map((address) => {
    const { bytes } = addressBytes(address);
    return bytes.length === 4 ? Buffer.concat([Buffer.alloc(10), Buffer.from([0xff, 0xff]), bytes]) : bytes;
  });
  return Uint8Array.from(Buffer.concat(parts));
}

/** Rows that say the same are one sum: they differ in what only the model asks for, or in when they were counted. */
async function sumsOf({ texts, counts }: IntervalFile): Promise<FlowSum[]> {
  const sums = new Map<string, FlowSum>();
  for (const [index, text] of texts.entries()) {
    if (index % ROWS === ROWS - 1) await nextTurn();
    const at = (which: number) => counts[index * ROW_COUNTS + which]!;
    const known = sums.get(text);
    const sum = known ?? { ...EMPTY, ...(JSON.parse(text) as FlowKey) };
    if (!known) sums.set(text, sum);
    sum.packets += at(0);
    sum.bytes += at(1);
    sum.replyPackets += at(2);
    sum.replyBytes += at(3);
    sum.started += at(4);
    sum.ended += at(5);
    sum.live += at(6);
    sum.lastSeen = Math.max(sum.lastSeen, at(7));
  }
  return [...sums.values()];
}

const EMPTY = {
  ...{ service: undefined, reason: undefined, egress: undefined, ingress: undefined },
  ...{ packets: 0, bytes: 0, replyPackets: 0, replyBytes: 0, started: 0, ended: 0, live: 0, lastSeen: 0 },
} as const;
