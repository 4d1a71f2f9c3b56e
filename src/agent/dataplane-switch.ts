import type { Dataplane, DataplaneState } from "../api/dataplane.ts";
import type { DataplaneAnnouncement, Refusal } from "../api/protocol/agent-report.ts";
import type { ModelDelta } from "../calc/model.ts";
import { ModelCopy } from "../calc/model-copy.ts";
import type {
  ApplyReport,
  DataplaneDriver,
  LimitedWorkload,
  SweepReport,
  Table,
  TableName,
} from "../dataplane/contract.ts";
import type { MapFill } from "../dataplane/ebpf/map-fill.ts";
import type { FlowAccounting } from "../dataplane/flow-sums.ts";
import { emptyDelta } from "../dataplane/model-delta.ts";
import type { Next } from "../dataplane/switchover/next-step.ts";
import { createSwitchover, type RollbackWatchdog, type SwitchoverOptions } from "../dataplane/switchover/switchover.ts";
import { type Clock, sleep } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { MeasuredDataplane } from "./dataplanes.ts";
import { type ProxyAway, proxyWasAway } from "./kube-proxy-away.ts";

/** Opens a data plane; says why it cannot where it cannot. */
export type OpenDataplane = () => Promise<DataplaneDriver>;

/**
 * The two data planes as one, of which the configured one filters. A change is never a moment without policy: the new one is programmed
 * completely while the old one filters, and only when it is proven is the old one's filter removed. If the new one cannot be programmed, the
 * old one stays and it is retried. The switchover decides the order.
 */
export interface DataplaneSwitch {
  apply(delta: ModelDelta): Promise<ApplyReport>;
  resync(): Promise<void>;
  sweep(): Promise<SweepReport>;
  show(table: TableName): Promise<Table>;
  /** The one that takes what is new; undefined before the first delta in sync. */
  acting(): Dataplane | undefined;
  announcement(): DataplaneAnnouncement | undefined;
  /** The cluster knows it; peers hear of it from there. */
  announced(what: DataplaneAnnouncement): void;
  announcedLast(): DataplaneAnnouncement | undefined;
  /** Whether eBPF was found to work, since it acts: the API server is reached, and services are by way of the programs. */
  confirm(works: boolean): void;
  /** Looks whether kube-proxy is away from this node while eBPF serves it, and remembers it. */
  observeProxy(): void;
  /** Whether the service proxy's rules are ours to remove wherever they appear. */
  removesProxyRules(): boolean;
  /** Of the one that filters, what it counts for flow logs. */
  flows(): { dataplane: Dataplane; flows: FlowAccounting } | undefined;
  /** How full the maps are. */
  fill(): MapFill[];
  /** Counts where that may be necessary; pods that have their share of a connection table. */
  checkShares(): Promise<LimitedWorkload[]>;
  /** For people: what is wanted, what is so, what comes next. */
  state(): SwitchoverReport;
  close(): Promise<void>;
}

export interface SwitchoverReport {
  wanted: Dataplane;
  /** What the BPF programs do; undefined where there are none. */
  mode: DataplaneState | undefined;
  next: string;
  /** Why eBPF is not tried though it is configured. */
  heldBack: string | undefined;
  /** Why the last attempt to change the data plane failed; it is tried again. */
  failure: string | undefined;
}

export interface DataplaneSwitchOptions extends Omit<SwitchoverOptions, "clock" | "log"> {
  watchdog: EbpfBlocked & RollbackWatchdog;
  /** Why eBPF cannot act on this node; undefined: it can. */
  refusal: Refusal | undefined;
  clock: Clock;
  log: Log;
  /** Whether no service proxy runs on this node any more, as far as can be seen. */
  proxyLeft?: () => boolean;
  /** Whether the cluster runs kube-proxy on this node, or is about to. */
  proxyScheduled?: () => boolean;
  proxyAway: ProxyAway;
  /** The reported state may have changed. */
  onChange?: () => void;
}

/** Whether eBPF had to be left here, and is not to be tried for a while. */
export interface EbpfBlocked {
  blocked(): string | undefined;
  /** The desired data plane has changed since. */
  unblock(): void;
}

/** While something is waited for. */
const POLL_MS = 200;
/** While connections end by themselves: to look through all of them costs the processor time they need. */
const DRAIN_POLL_MS = 2_000;
/** While a service proxy has not left: nothing depends on it. */
const PROXY_MS = 2_000;
/** After something failed. */
const AGAIN_MS = 10_000;
/** While the API server does not answer. */
const API_POLL_MS = 1_000;
/** So often it must stay silent after eBPF was reverted for eBPF not to be the cause. */
const SILENT_TIMES = 2;
/** How long kube-proxy may take to stop: until then it would only write its rules again. */
const PROXY_LEAVES_MS = 60_000;

function pollTime(next: Exclude<Next, "settled">): number {
  if (!("wait" in next)) return POLL_MS;
  return next.wait === "flows" ? DRAIN_POLL_MS : next.wait === "api" ? API_POLL_MS : POLL_MS;
}

export function dataplaneSwitch(options: DataplaneSwitchOptions): DataplaneSwitch {
  return new NodeDataplaneSwitch(options);
}

class NodeDataplaneSwitch implements DataplaneSwitch {
  private readonly options: DataplaneSwitchOptions;
  private readonly switchover: ReturnType<typeof createSwitchover>;
  private readonly model = new ModelCopy();
  private next: Next | undefined;
  private failure: string | undefined;
  private inEffect = false;
  private lastAnnouncement: DataplaneAnnouncement | undefined;
  private confirmed = false;
  private confirmedAt = 0;
  private acknowledged: { what: DataplaneAnnouncement; at: number } | undefined;
  /** eBPF was tried again after an outage of the API server, and has not been confirmed since. */
  private triedAgain = false;
  private lane: Promise<unknown> = Promise.resolve();
  private cancelPoll: (() => void) | undefined;
  private closed = false;

  constructor(options: DataplaneSwitchOptions) {
    this.options = options;
    this.switchover = createSwitchover(options);
  }

  apply(delta: ModelDelta): Promise<ApplyReport> {
    return this.inTurn(async () => {
      const before = this.model.settings.dataplane;
      this.model.apply(delta);
      // Which plane is wanted is only known once everything is: until then what an earlier life left goes on.
      if (!this.model.inSync) return { objects: [] };
      if (delta.settings && before !== "Nftables" && delta.settings.dataplane === "Nftables")
        this.options.watchdog.unblock();
      const reports = new Map<Dataplane, ApplyReport>();
      const failures: unknown[] = [];
      for (const [kind, plane] of this.switchover.dataplanes) {
        // A delta comes once: each takes it though another failed.
        await plane.apply(delta).then(
          (report) => reports.set(kind, report),
          (error: unknown) => failures.push(error),
        );
      }
      if (failures.length > 0) throw failures[0];
      if (this.switchover.dataplanes.has("BPF")) await this.updateKeepalive(delta);
      const fresh = await this.advance();
      this.inEffect = true;
      return fresh ?? reports.get(this.filtering()) ?? [...reports.values()][0] ?? { objects: [] };
    });
  }

  resync(): Promise<void> {
    return this.inTurn(async () => {
      for (const plane of this.switchover.dataplanes.values()) {
        await plane.resync();
        await plane.apply(emptyDelta(this.model.inSync));
      }
      if (this.switchover.dataplanes.size === 0) return;
      if (this.switchover.mode() === "Active") {
        await this.options.kernel.keep.put(true, this.model);
        await this.options.kernel.importNfConntrack();
      }
      await this.advance();
    });
  }

  sweep(): Promise<SweepReport> {
    return this.inTurn(async () => {
      const reports = [];
      for (const plane of this.switchover.dataplanes.values()) reports.push(await plane.sweep());
      return { removed: reports.flatMap(({ removed }) => removed) };
    });
  }

  async show(table: TableName): Promise<Table> {
    const plane = this.switchover.dataplanes.get(this.filtering()) ?? [...this.switchover.dataplanes.values()][0];
    return plane ? await plane.show(table) : { columns: [], rows: [] };
  }

  acting(): Dataplane | undefined {
    if (!this.inEffect) return undefined;
    return this.filtering();
  }

  announcement(): DataplaneAnnouncement | undefined {
    if (!this.inEffect) return undefined;
    const mode = this.switchover.mode();
    if (mode === "Active") return this.wanted() === "BPF" ? "BPF" : "LeavingBPF";
    return mode === "Draining" ? "DrainingBPF" : "Nftables";
  }

  announced(what: DataplaneAnnouncement): void {
    if (this.acknowledged?.what === what) return;
    this.acknowledged = { what, at: this.options.clock.now() };
    this.pollSoon(0);
  }

  announcedLast(): DataplaneAnnouncement | undefined {
    return this.acknowledged?.what;
  }

  confirm(works: boolean): void {
    if (this.confirmed === works) return;
    this.confirmed = works;
    if (works) {
      this.confirmedAt = this.options.clock.now();
      this.triedAgain = false;
    }
    this.pollSoon(0);
  }

  observeProxy(): void {
    // Which data plane is wanted is not known before.
    if (!this.inEffect) return;
    const { proxyAway } = this.options;
    const seen = {
      ebpfServes: this.ebpfServes(),
      proxyScheduled: this.proxyScheduled(),
      leftEbpf: this.filtering() !== "BPF" && this.wanted() !== "BPF",
    };
    proxyAway.set(proxyWasAway(proxyAway.get(), seen));
  }

  removesProxyRules(): boolean {
    return this.ebpfServes() && this.cleans();
  }

  flows(): { dataplane: Dataplane; flows: FlowAccounting } | undefined {
    const dataplane = this.acting();
    const flows = dataplane && this.switchover.dataplanes.get(dataplane)?.flows?.();
    return dataplane && flows ? { dataplane, flows } : undefined;
  }

  fill(): MapFill[] {
    const plane = this.switchover.dataplanes.get("BPF") as Partial<MeasuredDataplane> | undefined;
    return plane?.fill?.() ?? [];
  }

  checkShares(): Promise<LimitedWorkload[]> {
    return this.inTurn(async () => {
      const limited = [];
      for (const plane of this.switchover.dataplanes.values()) limited.push(...(await plane.checkShares()));
      return limited;
    });
  }

  state(): SwitchoverReport {
    const { next } = this;
    const last = next === undefined || next === "settled" ? "nothing" : "wait" in next ? next.wait : next.do;
    const then = this.switchover.currentStep() ?? this.failure ?? last;
    const heldBack = this.options.refusal?.why ?? this.options.watchdog.blocked();
    return { wanted: this.wanted(), mode: this.switchover.mode(), next: then, heldBack, failure: this.failure };
  }

  async close(): Promise<void> {
    this.closed = true;
    this.cancelPoll?.();
    await this.lane.catch(() => undefined);
    await this.switchover.close();
  }

  private wanted(): Dataplane {
    const { refusal, watchdog } = this.options;
    if (this.model.settings.dataplane !== "BPF" || refusal !== undefined) return "Nftables";
    return watchdog.blocked() === undefined ? "BPF" : "Nftables";
  }

  private ebpfServes(): boolean {
    return this.filtering() === "BPF" && this.next === "settled" && this.confirmed;
  }

  /** Its rules are to go when it has. */
  private waitsForProxy(): boolean {
    return this.filtering() === "BPF" && this.mayClean() && !this.cleans();
  }

  private mayClean(): boolean {
    return this.model.settings.configuration.bpfServiceProxyIptablesCleanupEnabled !== false;
  }

  private proxyScheduled(): boolean {
    return this.options.proxyScheduled?.() ?? false;
  }

  /**
   * One that was away and is scheduled again was restored, before this node leaves eBPF: its rules are what the node will need. In nftables mode
   * kube-proxy does not look whether they are still there, and would not write them again for an hour.
   */
  private cleans(): boolean {
    const { clock, proxyLeft = () => true } = this.options;
    if (!this.mayClean() || (this.options.proxyAway.get() && this.proxyScheduled())) return false;
    return proxyLeft() || clock.now() - this.confirmedAt > PROXY_LEAVES_MS;
  }

  private filtering(): Dataplane {
    return this.switchover.mode() === "Active" ? "BPF" : "Nftables";
  }

  private async advance(): Promise<ApplyReport | undefined> {
    const { log, onChange } = this.options;
    const facts = {
      confirmed: this.confirmed && this.filtering() === "BPF",
      peersNotifiedAt: this.acknowledged?.what === "LeavingBPF" ? this.acknowledged.at : undefined,
      cleanup: this.cleans(),
      proxyScheduled: this.proxyScheduled(),
    };
    try {
      const { next, report, done } = await this.switchover.advance(this.wanted(), this.model, facts);
      // What was found out of programs that did not act yet says nothing of those that do.
      if (done.includes("flip")) this.confirmed = false;
      this.next = next;
      this.failure = undefined;
      if (next !== "settled") this.pollSoon(pollTime(next));
      else if (this.waitsForProxy()) this.pollSoon(PROXY_MS);
      return report;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      if (this.failure === undefined) log.error({ error }, "the data plane could not be switched; the old one stays");
      this.failure = why;
      this.pollSoon(AGAIN_MS);
      if (this.switchover.dataplanes.size === 0) throw error;
      return undefined;
    } finally {
      this.observeProxy();
      // The mode may change without us, too: the rollback watchdog is a separate process.
      const now = this.announcement();
      const before = this.lastAnnouncement;
      this.lastAnnouncement = now;
      if (now !== before) onChange?.();
      if (before === "BPF" && now === "Nftables") void this.findCause();
    }
  }

  /**
   * The watchdog reverted the node because eBPF was not confirmed, and does not know why. Where the API server does not answer by way of
   * the old data plane either, it is the API server: eBPF is tried again when it answers, once.
   */
  private async findCause(): Promise<void> {
    const { watchdog, apiAnswers, clock, log } = this.options;
    if (this.triedAgain || !apiAnswers || watchdog.blocked() === undefined) return;
    for (let silent = 0; silent < SILENT_TIMES; silent++) {
      if (this.closed || (await apiAnswers())) return;
      await sleep(clock, API_POLL_MS);
    }
    this.triedAgain = true;
    watchdog.unblock();
    log.warn({}, "the API server does not answer without eBPF either: eBPF is tried again when it does");
    this.pollSoon(API_POLL_MS);
  }

  /** Connections that the kernel handles while programs are active must follow the model, too. */
  private async updateKeepalive(delta: ModelDelta): Promise<void> {
    const { kernel: ground } = this.options;
    if (this.switchover.mode() !== "Active") return;
    if (delta.settings || !ground.keep.covers(delta.services.set)) await ground.keep.put(true, this.model);
  }

  private pollSoon(ms: number): void {
    if (this.closed || !this.inEffect) return;
    this.cancelPoll?.();
    this.cancelPoll = this.options.clock.setTimeout(() => {
      this.cancelPoll = undefined;
      void this.inTurn(() => this.advance()).catch(() => undefined);
    }, ms);
  }

  private inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.lane.then(act, act);
    this.lane = turn.catch(() => undefined);
    return turn;
  }
}
