import type { Dataplane, DataplaneState } from "../api/dataplane.ts";
import type { DataplaneAnnouncement, Refusal } from "../api/protocol/agent-report.ts";
import type { ApplyReport, DataplaneDriver, SweepReport, Table, TableName } from "../dataplane/contract.ts";
import type { MapFill } from "../dataplane/ebpf/map-fill.ts";
import { createHandOver, type DeadMan, type HandOverParts } from "../dataplane/handover/hand-over.ts";
import type { Next } from "../dataplane/handover/next-step.ts";
import { emptyDelta } from "../dataplane/model-delta.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { ModelDelta } from "../policy/model.ts";
import { ModelCopy } from "../policy/model-copy.ts";
import type { FilledPlane } from "./planes.ts";

/** Opens a data plane; says why it cannot where it cannot. */
export type OpenPlane = () => Promise<DataplaneDriver>;

/**
 * The two data planes as one, of which the configured one filters. A change is never a moment without policy: the new one is programmed
 * whole and acts beside the old one, and only when it is proven does the old one's filter go. Where the new one cannot be programmed, the
 * old one stays and it is tried again. In which order is the hand-over's business.
 */
export interface PlaneSwitch {
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
  /** Whether the service proxy's rules are ours to remove wherever they appear. */
  removesProxyRules(): boolean;
  /** How full the maps are. */
  fill(): MapFill[];
  /** For people: what is wanted, what is so, what comes next. */
  state(): HandOverState;
  close(): Promise<void>;
}

export interface HandOverState {
  wanted: Dataplane;
  /** What the BPF programs do; undefined where there are none. */
  mode: DataplaneState | undefined;
  next: string;
  /** Why eBPF is not tried though it is configured. */
  heldBack: string | undefined;
}

export interface PlaneSwitchOptions extends Omit<HandOverParts, "clock" | "log" | "deadMan"> {
  deadMan: HeldBack & DeadMan;
  /** Why eBPF cannot act on this node; undefined: it can. */
  refusal: Refusal | undefined;
  clock: Clock;
  log: Log;
  /** Whether no service proxy runs on this node any more, as far as can be seen. */
  proxyLeft?: () => boolean;
  /** What others are told may have changed. */
  onChange?: () => void;
}

/** Whether eBPF had to be left here, and is not to be tried for a while. */
export interface HeldBack {
  heldBack(): string | undefined;
  /** Somebody has asked for something else since. */
  forgive(): void;
}

/** While something is waited for. */
const LOOK_MS = 200;
/** While connections end by themselves: to look through all of them costs the processor time they need. */
const FLOWS_MS = 2_000;
/** While a service proxy has not left: nothing depends on it. */
const PROXY_MS = 2_000;
/** After something failed. */
const AGAIN_MS = 10_000;
/** How long a proxy may take to be told that it is not needed any more: until then it would only write its rules again. */
const PROXY_LEAVES_MS = 60_000;

export function planeSwitch(options: PlaneSwitchOptions): PlaneSwitch {
  return new NodePlaneSwitch(options);
}

class NodePlaneSwitch implements PlaneSwitch {
  private readonly options: PlaneSwitchOptions;
  private readonly handOver: ReturnType<typeof createHandOver>;
  private readonly model = new ModelCopy();
  private next: Next | undefined;
  private failure: string | undefined;
  private inEffect = false;
  private saidLast: DataplaneAnnouncement | undefined;
  private confirmed = false;
  private confirmedAt = 0;
  private told: { what: DataplaneAnnouncement; at: number } | undefined;
  private lane: Promise<unknown> = Promise.resolve();
  private cancelLook: (() => void) | undefined;
  private closed = false;

  constructor(options: PlaneSwitchOptions) {
    this.options = options;
    this.handOver = createHandOver(options);
  }

  apply(delta: ModelDelta): Promise<ApplyReport> {
    return this.inTurn(async () => {
      const before = this.model.settings.dataplane;
      this.model.apply(delta);
      // Which plane is wanted is only known once everything is: until then what an earlier life left goes on.
      if (!this.model.inSync) return { objects: [] };
      if (delta.settings && before !== "Nftables" && delta.settings.dataplane === "Nftables")
        this.options.deadMan.forgive();
      const reports = new Map<Dataplane, ApplyReport>();
      for (const [kind, plane] of this.handOver.planes) reports.set(kind, await plane.apply(delta));
      if (this.handOver.planes.has("BPF")) await this.besidePrograms(delta);
      const fresh = await this.advance();
      this.inEffect = true;
      return fresh ?? reports.get(this.filtering()) ?? [...reports.values()][0] ?? { objects: [] };
    });
  }

  resync(): Promise<void> {
    return this.inTurn(async () => {
      for (const plane of this.handOver.planes.values()) {
        await plane.resync();
        await plane.apply(emptyDelta(this.model.inSync));
      }
      if (this.handOver.planes.size === 0) return;
      if (this.handOver.mode() === "Active") {
        await this.options.ground.keep.put(true, this.model);
        await this.options.ground.tellOldFlows();
      }
      await this.advance();
    });
  }

  sweep(): Promise<SweepReport> {
    return this.inTurn(async () => {
      const reports = [];
      for (const plane of this.handOver.planes.values()) reports.push(await plane.sweep());
      return { removed: reports.flatMap(({ removed }) => removed) };
    });
  }

  async show(table: TableName): Promise<Table> {
    const plane = this.handOver.planes.get(this.filtering()) ?? [...this.handOver.planes.values()][0];
    return plane ? await plane.show(table) : { columns: [], rows: [] };
  }

  acting(): Dataplane | undefined {
    if (!this.inEffect) return undefined;
    return this.filtering();
  }

  announcement(): DataplaneAnnouncement | undefined {
    if (!this.inEffect) return undefined;
    const mode = this.handOver.mode();
    if (mode === "Active") return this.wanted() === "BPF" ? "BPF" : "LeavingBPF";
    return mode === "Draining" ? "DrainingBPF" : "Nftables";
  }

  announced(what: DataplaneAnnouncement): void {
    if (this.told?.what === what) return;
    this.told = { what, at: this.options.clock.now() };
    this.lookSoon(0);
  }

  announcedLast(): DataplaneAnnouncement | undefined {
    return this.told?.what;
  }

  confirm(works: boolean): void {
    if (this.confirmed === works) return;
    this.confirmed = works;
    if (works) this.confirmedAt = this.options.clock.now();
    this.lookSoon(0);
  }

  removesProxyRules(): boolean {
    return this.filtering() === "BPF" && this.next === "settled" && this.confirmed && this.cleans();
  }

  fill(): MapFill[] {
    const plane = this.handOver.planes.get("BPF") as Partial<FilledPlane> | undefined;
    return plane?.fill?.() ?? [];
  }

  state(): HandOverState {
    const { next } = this;
    const last = next === undefined || next === "settled" ? "nothing" : "wait" in next ? next.wait : next.do;
    const then = this.handOver.taking() ?? this.failure ?? last;
    const heldBack = this.options.refusal?.why ?? this.options.deadMan.heldBack();
    return { wanted: this.wanted(), mode: this.handOver.mode(), next: then, heldBack };
  }

  async close(): Promise<void> {
    this.closed = true;
    this.cancelLook?.();
    await this.lane.catch(() => undefined);
    await this.handOver.close();
  }

  private wanted(): Dataplane {
    const { refusal, deadMan } = this.options;
    if (this.model.settings.dataplane !== "BPF" || refusal !== undefined) return "Nftables";
    return deadMan.heldBack() === undefined ? "BPF" : "Nftables";
  }

  /** Its rules are to go when it has. */
  private waitsForProxy(): boolean {
    return this.filtering() === "BPF" && this.mayClean() && !this.cleans();
  }

  private mayClean(): boolean {
    return this.model.settings.configuration.bpfServiceProxyIptablesCleanupEnabled !== false;
  }

  private cleans(): boolean {
    const { clock, proxyLeft = () => true } = this.options;
    if (!this.mayClean()) return false;
    return proxyLeft() || clock.now() - this.confirmedAt > PROXY_LEAVES_MS;
  }

  private filtering(): Dataplane {
    return this.handOver.mode() === "Active" ? "BPF" : "Nftables";
  }

  private async advance(): Promise<ApplyReport | undefined> {
    const { log, onChange } = this.options;
    const facts = {
      confirmed: this.confirmed && this.filtering() === "BPF",
      peersToldAt: this.told?.what === "LeavingBPF" ? this.told.at : undefined,
      cleanup: this.cleans(),
    };
    try {
      const { next, report, done } = await this.handOver.advance(this.wanted(), this.model, facts);
      // What was found out of programs that did not act yet says nothing of those that do.
      if (done.includes("flip")) this.confirmed = false;
      this.next = next;
      this.failure = undefined;
      if (next !== "settled") this.lookSoon("wait" in next && next.wait === "flows" ? FLOWS_MS : LOOK_MS);
      else if (this.waitsForProxy()) this.lookSoon(PROXY_MS);
      return report;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      if (this.failure === undefined) log.error({ error }, "the data plane could not be switched; the old one stays");
      this.failure = why;
      this.lookSoon(AGAIN_MS);
      if (this.handOver.planes.size === 0) throw error;
      return undefined;
    } finally {
      // It may have changed without us, too: the dead-man asks nobody.
      const now = this.announcement();
      if (now !== this.saidLast) onChange?.();
      this.saidLast = now;
    }
  }

  /** What the kernel carries beside the programs must follow the model, too. */
  private async besidePrograms(delta: ModelDelta): Promise<void> {
    const { ground } = this.options;
    if (this.handOver.mode() !== "Active") return;
    if (delta.settings || !ground.keep.covers(delta.services.set)) await ground.keep.put(true, this.model);
  }

  private lookSoon(ms: number): void {
    if (this.closed || !this.inEffect) return;
    this.cancelLook?.();
    this.cancelLook = this.options.clock.setTimeout(() => {
      this.cancelLook = undefined;
      void this.inTurn(() => this.advance()).catch(() => undefined);
    }, ms);
  }

  private inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.lane.then(act, act);
    this.lane = turn.catch(() => undefined);
    return turn;
  }
}
