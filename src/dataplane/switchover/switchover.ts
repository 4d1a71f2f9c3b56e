/** Takes a node's connections from one plane to the other, step by step as `nextStep` says, and back. */
import type { Dataplane } from "../../api/dataplane.ts";
import type { DataplaneModel, ServicePort } from "../../calc/model.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import type { ApplyReport, DataplaneDriver, ObjectOutcome } from "../contract.ts";
import type { FlowSwitchover } from "../flow-sums.ts";
import type { Affinity } from "../kube-proxy/proxy-affinities.ts";
import { wholeDelta } from "../model-delta.ts";
import { errors } from "./errors.ts";
import { type Next, nextStep, type StepName, type SwitchoverState } from "./next-step.ts";
import { nextGeneration } from "./node-mode.ts";
import type { Drain, SwitchoverKernel } from "./switchover-kernel.ts";

/** The service proxy's rules on this node. */
export interface ProxyRules {
  present(): Promise<boolean>;
  /** Whether it serves in all of these families. */
  serves(families: readonly (4 | 6)[]): Promise<boolean>;
  remove(): Promise<void>;
  /** Which clients stay with which backends, as it noted. */
  affinities(services: Iterable<ServicePort>): Promise<Affinity[]>;
  noteAffinities(affinities: readonly Affinity[]): Promise<void>;
}

/** Reverts to the old data plane unless the new one is confirmed in time. */
export interface RollbackWatchdog {
  armed(): boolean;
  arm(): void;
  /** It is not needed any more. */
  confirm(): void;
}

/** What the agent observes in addition to the kernel. */
export interface SwitchoverFacts {
  /** Since the programs act: the API server answers, and services do by way of the programs. */
  confirmed: boolean;
  /** Since when the node has published that it leaves eBPF, in milliseconds; undefined: it has not. */
  peersNotifiedAt: number | undefined;
  /** Whether the proxy's rules are ours to remove. */
  cleanup: boolean;
  /** Whether the cluster runs kube-proxy on this node, or is about to. The kernel does not know after a reboot. */
  proxyScheduled: boolean;
}

export interface SwitchoverOptions {
  open: Record<Dataplane, () => Promise<DataplaneDriver>>;
  kernel: SwitchoverKernel;
  proxy: ProxyRules;
  watchdog: RollbackWatchdog;
  /** Whether the API server answers now. Without it, it is taken to. */
  apiAnswers?: () => Promise<boolean>;
  flows?: FlowSwitchover;
  clock: Clock;
  log: Log;
}

export interface Switchover {
  /** Planes that carry the model in this life. */
  readonly dataplanes: ReadonlyMap<Dataplane, DataplaneDriver>;
  /** Goes on until there is something to wait for. */
  advance(wanted: Dataplane, model: DataplaneModel, facts: SwitchoverFacts): Promise<Advance>;
  /** What is being done at this moment, or was done last on a way that has not ended. */
  currentStep(): StepName | undefined;
  /** Of the programs, as the kernel has it. */
  mode(): ReturnType<SwitchoverKernel["mode"]>;
  close(): Promise<void>;
}

export interface Advance {
  next: Next;
  /** What was done, in order. */
  done: StepName[];
  /** Of a plane that was programmed whole meanwhile. */
  report?: ApplyReport;
}

/** Packets already on their way through the proxy's rules when programs began to act have left them by then. */
const PROXY_RULES_MS = 300;
/** How long peers may take to see what the API server has; and how long publishing to the API server is tried. */
const PEERS_MS = 500;
const PEERS_MOST_MS = 5_000;
/** A kube-proxy that does not return in this time will not. A node without Services is then better than programs that never end. */
const PROXY_MOST_MS = 60_000;
const AFFINITIES_LOST = "session affinity was not exported: clients may get another backend";
/** A connection without a packet in this time is idle. */
const IDLE_MS = 10_000;

export function createSwitchover(parts: SwitchoverOptions): Switchover {
  return new NodeSwitchover(parts);
}

class NodeSwitchover implements Switchover {
  readonly dataplanes = new Map<Dataplane, DataplaneDriver>();
  private readonly parts: SwitchoverOptions;
  private step: StepName | undefined;
  private importedConntrack = false;
  private flippedAt: number | undefined;
  private leavingSince: number | undefined;
  private drain: (Drain & { since: number; given: boolean }) | undefined;

  constructor(parts: SwitchoverOptions) {
    this.parts = parts;
  }

  currentStep(): StepName | undefined {
    return this.step;
  }

  mode(): ReturnType<SwitchoverKernel["mode"]> {
    return this.parts.kernel.mode();
  }

  async advance(wanted: Dataplane, model: DataplaneModel, facts: SwitchoverFacts): Promise<Advance> {
    const done: StepName[] = [];
    let report: ApplyReport | undefined;
    const apiAnswers = await this.asksApi(wanted);
    try {
      for (;;) {
        this.keepTime(wanted);
        const next = nextStep(wanted, { ...(await this.observe(model, facts)), apiAnswers });
        // Connections begin while it is waited: they are imported when it goes on.
        if (next !== "settled" && "wait" in next && next.wait === "api") this.importedConntrack = false;
        if (next === "settled" || "wait" in next) return { next, done, ...(report ? { report } : {}) };
        // What a step was to make so must be so after it: else it would be done for ever.
        if (done.at(-1) === next.do) throw errors.HANDOVER_STEP_WITHOUT_EFFECT(next.do);
        this.parts.log.info({ step: next.do, wanted }, "changing the data plane");
        this.step = next.do;
        report = (await this.runStep(next.do, model)) ?? report;
        done.push(next.do);
      }
    } finally {
      this.step = undefined;
    }
  }

  async close(): Promise<void> {
    for (const plane of this.dataplanes.values()) await plane.close();
    this.dataplanes.clear();
    this.parts.kernel.close();
  }

  /** Once for all steps up to the flip: a slow server makes each question cost seconds. */
  private async asksApi(wanted: Dataplane): Promise<boolean> {
    const { watchdog, apiAnswers } = this.parts;
    if (wanted !== "BPF" || this.mode() === "Active" || watchdog.armed()) return true;
    return (await apiAnswers?.()) ?? true;
  }

  private keepTime(wanted: Dataplane): void {
    const now = this.parts.clock.now();
    const mode = this.mode();
    this.flippedAt = mode === "Active" ? (this.flippedAt ?? now) : undefined;
    this.leavingSince = wanted === "Nftables" && mode === "Active" ? (this.leavingSince ?? now) : undefined;
    if (mode === "Draining") {
      this.drain ??= { generation: this.parts.kernel.generation(), known: new Set(), since: now, given: false };
    } else this.drain = undefined;
  }

  private async observe(model: DataplaneModel, facts: SwitchoverFacts): Promise<Omit<SwitchoverState, "apiAnswers">> {
    const { kernel: ground, proxy, watchdog, clock } = this.parts;
    const since = (at: number | undefined) => (at === undefined ? 0 : clock.now() - at);
    const left = since(this.leavingSince);
    return {
      mode: this.mode(),
      programmed: { Nftables: this.dataplanes.has("Nftables"), BPF: this.dataplanes.has("BPF") },
      filter: await ground.filter(),
      keep: await ground.keep.state(),
      watchdogArmed: watchdog.armed(),
      importedConntrack: this.importedConntrack,
      confirmed: facts.confirmed,
      peersKnow:
        left > PEERS_MOST_MS || (facts.peersNotifiedAt !== undefined && since(facts.peersNotifiedAt) > PEERS_MS),
      proxy: {
        rules: await proxy.present(),
        serves: this.leavingSince !== undefined && (await proxy.serves(familiesOf(model))),
        expected: facts.proxyScheduled || (await ground.keep.proxyWasHere()),
        ours: facts.cleanup && facts.confirmed,
        quiet: since(this.flippedAt) > PROXY_RULES_MS,
        givenUp: left > PROXY_MOST_MS,
      },
      drain: { given: this.drain?.given ?? false, left: await this.entriesLeft(model) },
    };
  }

  private async entriesLeft(model: DataplaneModel): Promise<boolean> {
    const { kernel: ground, clock } = this.parts;
    if (!this.drain?.given) return false;
    if (clock.now() - this.drain.since < IDLE_MS) return (await ground.conntrackCount()) > 0;
    const { staying, refused } = await ground.exportConntrack("idle", this.drain, model);
    return staying + refused > 0;
  }

  private async runStep(step: StepName, model: DataplaneModel): Promise<ApplyReport | undefined> {
    const { kernel: ground, proxy, watchdog } = this.parts;
    switch (step) {
      case "programEbpf":
        return await this.program("BPF", model);
      case "programNft":
        return await this.program("Nftables", model);
      case "keep":
      case "openGate":
        await ground.keep.put(false, model);
        return undefined;
      case "closeGate":
        await ground.keep.put(true, model);
        return undefined;
      case "importConntrack":
        await ground.importNfConntrack();
        await this.learnAffinities(model);
        if (await proxy.present()) await ground.keep.noteProxy();
        this.importedConntrack = true;
        return undefined;
      case "armWatchdog":
        return void watchdog.arm();
      case "flip":
        await this.tellFlows("entering", "BPF");
        ground.flip();
        // With those that began between the first look and the flip.
        await Promise.all([this.tellFlows("entered", "BPF"), ground.importNfConntrack()]);
        await this.tellFlows("left", "Nftables");
        await this.learnAffinities(model);
        this.importedConntrack = false;
        return undefined;
      case "confirm":
        return void watchdog.confirm();
      case "dropFilter":
        return void (await this.drop("Nftables"));
      case "removeProxyRules":
        return void (await proxy.remove());
      case "drain":
        return void (await this.beginDrain(model));
      case "exportAgain":
        await this.exportRest(model);
        return undefined;
      case "turnOff":
        return void ground.turnOff();
      case "removeEbpf":
        return void (await this.drop("BPF"));
      case "removeNatKeepalive":
        return void (await ground.keep.remove());
    }
  }

  /**
   * While the other plane filters, whole or not at all: nothing is gained by a plane that carries less. A pod without an interface does not
   * count: no packet of it passes in either. With no plane to fall back on, as after a reboot, each object is programmed for itself: what fails
   * is closed and reported, and keeps nothing else from working.
   */
  private async program(kind: Dataplane, model: DataplaneModel): Promise<ApplyReport> {
    const plane = await this.parts.open[kind]();
    try {
      const report = await plane.apply(wholeDelta(model, true));
      const carries = ({ kind }: ObjectOutcome) => kind === "endpoint" || kind === "interface";
      const failed = report.objects.find((one) => carries(one) && one.failed && !isWithoutInterface(one));
      const acts = this.mode() === "Active" || this.mode() === "Draining";
      const filters = await this.parts.kernel.filter();
      const [standsAlready, otherFilters] = kind === "BPF" ? [acts, filters] : [filters, acts];
      if (failed?.failed && !standsAlready && otherFilters) throw failed.failed;
      this.dataplanes.set(kind, plane);
      return report;
    } catch (error) {
      if (kind === "BPF" && this.mode() !== "Active" && this.mode() !== "Draining")
        await plane.remove().catch(() => {});
      await plane.close().catch(() => {});
      throw error;
    }
  }

  private async drop(kind: Dataplane): Promise<void> {
    await this.tellFlows("left", kind);
    const plane = this.dataplanes.get(kind) ?? (await this.parts.open[kind]());
    await plane.remove();
    await plane.close();
    this.dataplanes.delete(kind);
  }

  /**
   * What the programs carry is given to the kernel before they drain, and what began meanwhile right after. Between the two the standard
   * plane looks at all of it: what policy forbids by now, and no packet has asked about since, is not to be carried on.
   */
  private async beginDrain(model: DataplaneModel): Promise<void> {
    const { kernel: ground, clock, log } = this.parts;
    const drain = { generation: nextGeneration(ground.generation()), known: new Set<string>() };
    const first = await ground.exportConntrack("replace", drain, model);
    await this.dataplanes.get("Nftables")?.resync();
    await this.transferAffinities(model);
    await this.tellFlows("entering", "Nftables");
    ground.drain(drain.generation);
    this.drain = { ...drain, since: clock.now(), given: false };
    const [, rest] = await Promise.all([this.tellFlows("entered", "Nftables"), this.exportRest(model)]);
    await this.tellFlows("left", "BPF");
    log.info({ first, rest }, "connections were given to the kernel");
  }

  /** What flow logs lose is no reason to stop half-way. */
  private async tellFlows(what: keyof FlowSwitchover, kind: Dataplane): Promise<void> {
    const accounting = this.dataplanes.get(kind)?.flows?.();
    if (!accounting) return;
    await this.parts.flows?.[what](kind, accounting).catch((error: unknown) => {
      this.parts.log.warn({ error, dataplane: kind }, "flow logs could not follow the change of the data plane");
    });
  }

  private async learnAffinities({ services }: DataplaneModel): Promise<void> {
    const { kernel: ground, proxy, log } = this.parts;
    await proxy
      .affinities(services.values())
      .then((noted) => ground.noteAffinities(noted))
      .catch((error: unknown) => log.warn({ error }, AFFINITIES_LOST));
  }

  private async transferAffinities(model: DataplaneModel): Promise<void> {
    const { kernel: ground, proxy, log } = this.parts;
    await ground
      .affinities(model)
      .then((noted) => proxy.noteAffinities(noted))
      .catch((error: unknown) => log.warn({ error }, AFFINITIES_LOST));
  }

  private async exportRest(model: DataplaneModel) {
    const drain = this.drain!;
    const given = await this.parts.kernel.exportConntrack("insert", drain, model);
    await this.dataplanes.get("Nftables")?.resync();
    drain.given = true;
    return given;
  }
}

/** It may never come back (a pod that ended with the node), or comes with the pod's next sandbox. */
function isWithoutInterface({ failed }: ObjectOutcome): boolean {
  return failed?.code === "EBPF_INTERFACE_ABSENT";
}

/** Of the cluster's services. */
function familiesOf({ services }: DataplaneModel): (4 | 6)[] {
  return [...new Set([...services.values()].map(({ family }) => family))];
}
