import { join } from "node:path";
import type { Dataplane } from "../../api/dataplane.ts";
import type { FlowBatch } from "../../api/protocol/flow.ts";
import { type Pace, writeBatch } from "../../api/protocol/flow-wire.ts";
import type { FlowAccounting, FlowShed, FlowSum, FlowSwitchover } from "../../dataplane/flow-sums.ts";
import { type Clock, sleep } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import { type BatchFiles, batchFiles } from "./batch-files.ts";
import { BatchRefused, type FlowDelivery, type FlowTarget, flowDelivery } from "./flow-delivery.ts";
import { flowRows, type NamingParts } from "./flow-rows.ts";

interface Counting {
  dataplane: Dataplane;
  flows: FlowAccounting;
  /** The interval it counts in. */
  current: number;
}

export interface FlowCollectorParts {
  node: string;
  boot: string;
  /** In the run directory: batches of a data plane that was left, and those that were sent a moment ago. */
  directory: string;
  /** Of the data plane that acts; undefined: none does yet. */
  accounting(): Omit<Counting, "current"> | undefined;
  /** Resolves when it is known whether anybody asks for flows: before, nothing is begun and nothing thrown away. */
  known: Promise<unknown>;
  /** Where flows are kept; undefined: nobody asks for them. */
  target(): FlowTarget | undefined;
  naming(sums: readonly FlowSum[]): Promise<Omit<NamingParts, "node" | "dataplane">>;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

export interface FlowCollector extends FlowSwitchover {
  done: Promise<void>;
  state(): FlowCollectorState;
}

export interface FlowCollectorState {
  /** Whether anybody asks for flows. */
  wanted: boolean;
  connected: boolean;
  /** Why the last batch did not go; undefined: it did. */
  failure: string | undefined;
  /** The same, once it has been so for a minute. */
  stuck: string | undefined;
  /** Intervals that are counted and not kept elsewhere. */
  waiting: number;
  sent: number;
  rows: number;
  shed: FlowShed;
  /** Of the time since the last turn, how much the turn took. */
  share: number;
}

/** Without a word of the server. */
const PACE_MS = 15_000;
const CHECK_MS = 1_000;
/** Of one processor: who watches is told more often than every PACE_MS only within it. */
const MOST_SHARE = 0.02;
/** So many intervals may wait in the kernel: then the last one goes on until one of them is kept. */
const MOST_WAITING = 4;
/** For a server that has forgotten: what was sent in this time is sent again. */
const REFILL_MS = 5 * 60_000;
const REFILL_BYTES = 32 * 1024 * 1024;
const RECONNECT_MS = 2_000;
const STUCK_MS = 60_000;
/** A switch that is given up before the flip lets go after it. */
const FLIP_MS = 5_000;

/** Ends an interval of what the data plane counts, names it, sends it, and forgets it once it is kept: in this order, so that nothing is lost by a kill. */
export function collectFlows(parts: FlowCollectorParts): FlowCollector {
  const collector = new NodeFlowCollector(parts);
  return {
    done: collector.run(),
    entering: (dataplane, flows) => collector.entering(dataplane, flows),
    entered: () => collector.entered(),
    left: (dataplane, flows) => collector.left(dataplane, flows),
    state: () => collector.state(),
  };
}

class NodeFlowCollector {
  readonly #parts: FlowCollectorParts;
  #delivery: FlowDelivery | undefined;
  #url = "";
  #pace: Pace | undefined;
  /** Of the server that has everything that was sent. */
  #instance = "";
  #counting: Counting | undefined;
  /** Counts too, and acts in a moment. */
  #entered: Counting | undefined;
  #interval = 0;
  #lost = 0;
  #failure: { why: string; since: number } | undefined;
  #waiting = 0;
  #sent = 0;
  #rows = 0;
  #share = 0;
  #shed: FlowShed = { merged: 0, unattributed: 0 };
  /** Of data planes that were left, not sent yet. */
  readonly #left: BatchFiles;
  /** Sent and kept, for a server that forgets. On disk: it may forget while the agent is away. */
  readonly #kept: BatchFiles;
  #lane: Promise<unknown> = Promise.resolve();
  /** Ended when a switch of the data plane needs the lane no more. */
  #flipping = new AbortController();
  #wake: () => void = () => {};

  constructor(parts: FlowCollectorParts) {
    this.#parts = parts;
    this.#left = batchFiles(join(parts.directory, "left"));
    this.#kept = batchFiles(join(parts.directory, "sent"));
  }

  state(): FlowCollectorState {
    const { why, since = 0 } = this.#failure ?? {};
    return {
      ...{ wanted: this.#parts.target() !== undefined, connected: this.#pace !== undefined, failure: why },
      stuck: this.#parts.clock.now() - since > STUCK_MS ? why : undefined,
      ...{ waiting: this.#waiting, sent: this.#sent, rows: this.#rows, share: this.#share, shed: this.#shed },
    };
  }

  async run(): Promise<void> {
    const { signal, log, known } = this.#parts;
    await Promise.race([known, new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }))]);
    while (!signal.aborted) {
      let took = 0;
      try {
        await this.#inTurn(async () => {
          // A switch of the data plane may have kept it waiting for seconds: that is no work.
          const began = performance.now();
          await this.#turn().finally(() => {
            took = performance.now() - began;
          });
        });
        if (this.#pace || !this.#parts.target()) this.#failure = undefined;
      } catch (error) {
        if (!signal.aborted && !this.#failure) log.warn({ error }, "flows could not be sent, they wait");
        this.#fail(error instanceof Error ? error.message : String(error));
      }
      const pace = this.#pace?.intervalMs ?? (this.#parts.target() ? PACE_MS : CHECK_MS);
      const wait = Math.max(pace, Math.min(took / MOST_SHARE, PACE_MS));
      this.#share = took / (took + wait);
      await this.#rest(this.#parts.target() && !this.#pace ? Math.min(wait, RECONNECT_MS) : wait);
    }
    this.#close();
  }

  /** A pace that becomes faster ends it. */
  async #rest(ms: number): Promise<void> {
    const { clock, signal } = this.#parts;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await sleep(clock, ms, AbortSignal.any([signal, woken.signal]));
  }

  async #turn(): Promise<void> {
    const target = this.#parts.target();
    if (!target) return await this.#stop();
    const counting = this.#parts.accounting();
    if (!counting) return;
    if (this.#counting?.flows !== counting.flows) {
      if (this.#counting) await this.#take(await this.#begin(this.#counting));
      // An earlier life may have had the clock ahead.
      this.#interval = Math.max(this.#interval, ...(await counting.flows.intervals()));
      this.#counting = await this.#begin(counting);
    }
    this.#connect(target);
    // Before its first word it is not known whether the server has forgotten what it had.
    if (!this.#pace) return;
    // Of a life whose clock was ahead, and of which nothing is left here: what has a lower number would count as a repeat.
    this.#interval = Math.max(this.#interval, this.#pace.last ?? 0);
    await this.#refill(this.#pace);
    await this.#sendLeft();
    await this.#sendCounted(this.#counting);
  }

  async #sendCounted(counting: Counting): Promise<void> {
    const { dataplane, flows } = counting;
    if ((await flows.intervals()).length <= MOST_WAITING) counting.current = (await this.#begin(counting)).current;
    const ended = (await flows.intervals()).filter((interval) => interval !== counting.current);
    this.#waiting = ended.length;
    for (const interval of ended) {
      const batch = await this.#batch(dataplane, interval, await flows.read(interval), flows.shed());
      await this.#sendText(interval, writeBatch(batch, this.#parts.clock.now()));
      await flows.forget(interval);
      this.#waiting--;
      this.#sent++;
      this.#rows += batch.rows.length;
    }
  }

  async #begin({ dataplane, flows }: Omit<Counting, "current">): Promise<Counting> {
    const current = this.#next();
    await flows.begin(current);
    return { dataplane, flows, current };
  }

  /** Numbers grow, also over lives of this program: they are seconds of the clock unless that was set back. */
  #next(): number {
    this.#interval = Math.max(this.#interval + 1, Math.floor(this.#parts.clock.now() / 1_000));
    return this.#interval;
  }

  async #batch(dataplane: Dataplane, interval: number, sums: readonly FlowSum[], shed: FlowShed): Promise<FlowBatch> {
    const { node, boot, clock } = this.#parts;
    const rows = flowRows(sums, { node, dataplane, ...(await this.#parts.naming(sums)) });
    const before = this.#shed;
    this.#shed = { ...shed };
    return {
      ...{ node, boot, interval, rows, since: interval * 1_000, until: clock.now() },
      merged: Math.max(0, shed.merged - before.merged),
      unattributed: Math.max(0, shed.unattributed - before.unattributed),
    };
  }

  async #sendText(interval: number, text: string): Promise<void> {
    if (!this.#delivery) throw new Error("vendor-flow-logs is not reached");
    try {
      await this.#delivery.send(text);
    } catch (error) {
      if (!(error instanceof BatchRefused)) throw error;
      // It never will be taken: those after it are not to wait for it.
      this.#parts.log.error({ error, interval }, "a batch of flows was refused, and is lost");
      return;
    }
    this.#kept.write(interval, text);
    this.#kept.prune(Date.now() - REFILL_MS, REFILL_BYTES);
  }

  async entering(dataplane: Dataplane, flows: FlowAccounting): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const turn = this.#inTurn(async () => {
        if (this.#counting && this.#counting.flows !== flows) this.#entered = await this.#begin({ dataplane, flows });
        resolve();
        // Nothing comes in between: the other's interval ends at once after the flip.
        await sleep(this.#parts.clock, FLIP_MS, this.#flipping.signal);
      });
      turn.catch(reject);
    });
  }

  async entered(): Promise<void> {
    try {
      if (this.#counting && this.#entered) this.#counting.current = (await this.#begin(this.#counting)).current;
    } finally {
      this.#flipping.abort();
      this.#flipping = new AbortController();
    }
  }

  async left(dataplane: Dataplane, flows: FlowAccounting): Promise<void> {
    await this.#inTurn(async () => {
      const before = this.#counting?.flows === flows ? this.#counting : undefined;
      if (this.#entered?.flows === flows) this.#entered = undefined;
      if (before && this.#entered) await this.#take(before);
      // A life that was cut short in the middle of a switch left what it had counted.
      else if ((await flows.intervals()).length > 0) await this.#take(await this.#begin({ dataplane, flows }));
      if (!before) return;
      this.#counting = this.#entered;
      this.#entered = undefined;
    });
  }

  /** What another data plane counted until its last interval began: on disk, since it is about to forget it. */
  async #take({ dataplane, flows, current }: Counting): Promise<void> {
    for (const interval of await flows.intervals()) {
      if (interval >= current) continue;
      const batch = await this.#batch(dataplane, interval, await flows.read(interval), flows.shed());
      this.#left.write(interval, writeBatch(batch, this.#parts.clock.now()));
      await flows.forget(interval);
    }
    await flows.stop();
  }

  async #sendLeft(): Promise<void> {
    for (const interval of this.#left.intervals()) {
      await this.#sendText(interval, this.#left.read(interval));
      this.#left.remove(interval);
    }
  }

  #connect(target: FlowTarget): void {
    if (this.#delivery && this.#url === target.url) return;
    this.#close();
    const { node, boot, clock, log } = this.#parts;
    if (clock.now() - this.#lost < RECONNECT_MS) return;
    this.#url = target.url;
    const delivery = flowDelivery(
      target,
      { node, boot },
      {
        onPace: (pace) => {
          if (this.#delivery !== delivery) return;
          const sooner = !this.#pace || pace.intervalMs < this.#pace.intervalMs;
          this.#pace = pace;
          if (sooner) this.#wake();
        },
        onLost: (why) => {
          if (this.#delivery !== delivery) return;
          log.debug({ why }, "the connection to vendor-flow-logs is lost");
          this.#fail(why);
          this.#close();
          this.#lost = clock.now();
        },
      },
    );
    this.#delivery = delivery;
  }

  /** A server that was started anew has nothing: it gets again what was sent a moment ago. What it has it does not count twice. */
  async #refill({ instance, last }: Pace): Promise<void> {
    if (this.#instance === instance) return;
    for (const interval of this.#kept.intervals()) {
      if (last === undefined || interval > last) await this.#delivery?.send(this.#kept.read(interval));
    }
    this.#instance = instance;
  }

  #close(): void {
    this.#delivery?.close();
    this.#delivery = undefined;
    this.#pace = undefined;
  }

  async #stop(): Promise<void> {
    this.#close();
    // An earlier life may have been cut short while flows were asked for.
    const flows = this.#counting?.flows ?? this.#parts.accounting()?.flows;
    if (flows && (this.#counting || (await flows.intervals()).length > 0)) await flows.stop();
    this.#counting = undefined;
    this.#waiting = 0;
    this.#left.removeAll();
    this.#kept.removeAll();
  }

  #fail(why: string): void {
    this.#failure = { why, since: this.#failure?.since ?? this.#parts.clock.now() };
  }

  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#lane.then(task);
    this.#lane = turn.catch(() => {});
    return turn;
  }
}
