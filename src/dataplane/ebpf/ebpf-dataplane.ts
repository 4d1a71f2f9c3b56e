import type { DataplaneState } from "../../api/dataplane.ts";
import type { ModelDelta, Net } from "../../calc/model.ts";
import { ModelCopy } from "../../calc/model-copy.ts";
import { addressOf, NetTable } from "../../calc/nets.ts";
import { type CONFIGURATION, INTERFACE_KIND, interfaceLayout, workloadLayout } from "../../gen/bpf/layout.gen.ts";
import type { LoadOptions } from "../../kernel/bpf/object.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { InterfaceAddress, Link, NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import type { Netns } from "../../kernel/netns/netns-port.ts";
import type { CodedError } from "../../kit/errors.ts";
import { parseAddress } from "../../kit/ip.ts";
import {
  type ApplyReport,
  type DataplaneDriver,
  LIMITED_FROM,
  type LimitedWorkload,
  type ObjectOutcome,
  type SweepReport,
  type Table,
  type TableName,
} from "../contract.ts";
import type { FlowAccounting } from "../flow-sums.ts";
import { realSysctls } from "../net/sysctls.ts";
import { conntrackTimes } from "./conntrack/conntrack-times.ts";
import { deletePodConntrack, deletePodNfConntrack } from "./conntrack/delete-pod-conntrack.ts";
import { addressKey, expireConntrack } from "./conntrack/expire-conntrack.ts";
import { ConntrackMigration, hasConntrack } from "./conntrack/migrate-conntrack.ts";
import { WorkloadShares } from "./conntrack/workload-shares.ts";
import { errors } from "./errors.ts";
import { EbpfFlowAccounting } from "./flows/flow-accounting.ts";
import { FlowNames } from "./flows/flow-names.ts";
import { openFlowSweep } from "./flows/flow-sweep.ts";
import { countLearnt, fillOf, type MapFill } from "./map-fill.ts";
import { MapTable, wrapped } from "./map-table.ts";
import { macBytes, netBytes } from "./net-bytes.ts";
import { type ListOptions, policyItems } from "./policy/policy-items.ts";
import { type PolicyProgram, PolicyPrograms } from "./policy/policy-programs.ts";
import { SetMap } from "./policy/set-map.ts";
import { type Attachments, ClsactAttachments, TcxAttachments } from "./programs/attachments.ts";
import {
  type DesiredInterface,
  desiredInterfaces,
  policyKey,
  unservedInterfaces,
} from "./programs/desired-interfaces.ts";
import { type Fit, fitToKernel } from "./programs/fit-to-kernel.ts";
import { NodeState } from "./programs/node-state.ts";
import { mapDirectory, otherMapDirectories, Programs, u32 } from "./programs/programs.ts";
import { removeAll } from "./remove-all.ts";
import { routeEntries } from "./route-entries.ts";
import { ClusterAddresses } from "./services/cluster-addresses.ts";
import { EbpfServices } from "./services/ebpf-services.ts";
import { showTable } from "./show.ts";
import { STATE_NUMBERS, stateOfNumber } from "./state-number.ts";
import { readVerdict, type VerdictEvent } from "./verdict-events.ts";

/** More entries than any map has. */
const UNLIMITED = 2 ** 31 - 1;

export interface EbpfOptions {
  kernel: Kernel;
  /** On a BPF file system: everything of ours that outlives the process is below it, and nothing else is. */
  pinDirectory: string;
  /** Name of the VXLAN device. */
  overlay: string;
  /** The node's network namespace, where it is not this process's. */
  netns?: Netns;
  /** Group of the node's own processes, whose sockets are connected to backends; absent: they are left alone. */
  cgroup?: string;
  /** Other sizes of maps, and other times, than the programs take by themselves. */
  maxEntries?: Record<string, number>;
  configuration?: Partial<typeof CONFIGURATION>;
  /** Called while eBPF runs, unless `bpfDisableUnprivileged` is false. */
  disableUnprivileged?: () => void;
  /** Where the names are kept that flow logs need in the next life too; absent: they are not. */
  flowNames?: string;
  /** The caller sets the mode: the first delta in sync does not turn it on. */
  startsOff?: boolean;
}

export interface EbpfDataplane extends DataplaneDriver {
  readonly kind: "BPF";
  /**
   * The node's switch: `Off`: our programs stay where they are and touch nothing. The first delta in sync turns it on, unless it `startsOff`.
   * `Draining`: known flows go on, but for those the kernel was given with a mark of this generation, and new ones are the kernel's.
   */
  setMode(mode: DataplaneState, generation?: number): void;
  mode(): DataplaneState;
  flows(): FlowAccounting;
  /** How full the maps are that can be: those of services now, those the programs write as they were when everything was last compared. */
  fill(): MapFill[];
  /** Emits verdict events, at most so many a second and CPU, until stopped. Only after a delta in sync. */
  watchVerdicts(perSecond: number, onVerdict: (verdict: VerdictEvent) => void): { stop(): void };
}

export async function createEbpfDataplane(options: EbpfOptions): Promise<EbpfDataplane> {
  const { kernel, pinDirectory, netns } = options;
  const features = await kernel.features();
  if (!features.schedCls) throw errors.EBPF_KERNEL_LACKS("programs at interfaces");
  const netlink = kernel.netlink(netns);
  kernel.bpf.makePinDirectory(pinDirectory);
  const inside = netns && { netns, port: kernel.netns };
  const attachments = features.tcx
    ? await TcxAttachments.open(kernel.bpf, `${pinDirectory}/links`, inside)
    : new ClsactAttachments(netlink, FILTER_NAME);
  const { mapIterators: iterates } = features;
  return new KernelDataplane(options, { netlink, attachments, fit: fitToKernel(features, kernel.bpf), iterates });
}

/** As `reverse_path` in bpf/lib/config.h. */
const REVERSE_PATH = { Disabled: 0, Loose: 1, Strict: 2 } as const;
/** How our filters are known where there are no links; no brand, as pins have none. */
const FILTER_NAME = "node_programs";
/** A table that a pod floods has to be looked through to see what ended; not so often that this costs the pods' processors more than the flood. */
const RECOUNT_MS = 10_000;

interface HeldInterface {
  ifindex: number;
  wanted: DesiredInterface;
  arrive: { key: string; program: PolicyProgram } | undefined;
  leave: { key: string; program: PolicyProgram } | undefined;
  epoch: number;
  attached: boolean;
}

class KernelDataplane implements EbpfDataplane {
  readonly kind = "BPF";
  private readonly options: EbpfOptions;
  private readonly netlink: NetlinkPort;
  private readonly attachments: Attachments;
  private readonly fit: Fit;
  private readonly iterates: boolean;
  private readonly model = new ModelCopy();
  private readonly versions = new Map<string, number>();
  private readonly held = new Map<string, HeldInterface>();
  private state: State | undefined;
  private services: EbpfServices | undefined;
  private counted: readonly MapFill[] = [];
  private expiredAt = 0;
  /** Of conntrack entries, as they were when the programs were loaded. */
  private times: Partial<typeof CONFIGURATION> = {};
  private reversePath: number = REVERSE_PATH.Loose;
  /** Addresses whose pods are gone and whose conntrack entries may not be. */
  private readonly released = new Set<string>();
  private readonly names: FlowNames;
  private accounting: EbpfFlowAccounting | undefined;

  constructor(
    options: EbpfOptions,
    {
      netlink,
      attachments,
      fit,
      iterates,
    }: { netlink: NetlinkPort; attachments: Attachments; fit: Fit; iterates: boolean },
  ) {
    this.options = options;
    this.netlink = netlink;
    this.attachments = attachments;
    this.fit = fit;
    this.iterates = iterates;
    this.names = new FlowNames(options.flowNames);
  }

  async apply(delta: ModelDelta): Promise<ApplyReport> {
    this.model.apply(delta);
    for (const net of delta.released ?? []) this.released.add(addressOf(net));
    for (const { id } of [...delta.policies.set, ...delta.profiles.set]) {
      this.versions.set(id, (this.versions.get(id) ?? 0) + 1);
    }
    // A part of the policies may allow what all of them forbid: nothing is touched before all are known.
    if (!this.model.inSync) return { objects: [] };
    return { objects: await this.realize(delta) };
  }

  async resync(): Promise<void> {
    if (!this.state) return;
    const { tables, sets, shares, clusterAddresses, programs } = this.state;
    shares.resync();
    for (const table of Object.values(tables)) table.resync();
    clusterAddresses.resync();
    await sets.resync();
    for (const held of this.held.values()) held.attached = false;
    await this.realize();
    const map = (name: string) => programs.map(name);
    this.counted = [await this.expire(this.state), ...(await countLearnt(map))];
  }

  async checkShares(): Promise<LimitedWorkload[]> {
    if (!this.state) return [];
    const isDue = performance.now() - this.expiredAt > RECOUNT_MS;
    // Of what is over, the programs take no notice, but it counts until it is removed.
    if (isDue && this.limited(this.state).length > 0) {
      const conntrack = await this.expire(this.state);
      this.counted = this.counted.map((one) => (one.map === conntrack.map ? conntrack : one));
    }
    return this.limited(this.state);
  }

  async sweep(): Promise<SweepReport> {
    if (!this.state) return { removed: [] };
    const removed: string[] = [];
    const wanted = new Set([...this.held.values()].map(({ ifindex }) => ifindex));
    for (const { ifindex, direction } of this.attachments.places()) {
      if (wanted.has(ifindex)) continue;
      await this.attachments.detach(ifindex, direction);
      removed.push(`program at interface ${ifindex}, ${direction}`);
    }
    const slots = this.state.policies.sweep();
    if (slots > 0) removed.push(`${slots} policy programs`);
    const members = await this.state.sets.resync();
    if (members > 0) removed.push(`${members} members of sets`);
    const services = (await this.services?.sweep()) ?? 0;
    if (services > 0) removed.push(`${services} entries of services`);
    for (const directory of otherMapDirectories(this.options.kernel.bpf, this.options.pinDirectory)) {
      removeAll(this.options.kernel.bpf, directory);
      removed.push(`maps of another layout at ${directory}`);
    }
    return { removed };
  }

  async show(table: TableName): Promise<Table> {
    const interfaces = [...this.held].map(([name, { ifindex, arrive, leave, epoch }]) => ({
      ...{ name, ifindex, epoch },
      slots: [arrive?.program.slot ?? 0, leave?.program.slot ?? 0] as const,
    }));
    return showTable(table, this.model, { interfaces, map: (name) => this.state?.programs.map(name) });
  }

  setMode(mode: DataplaneState, generation = 0): void {
    const { node } = this.open();
    // Before the mode, so that no drain uses a generation of an earlier one.
    node.put("NODE_GENERATION", mode === "Draining" ? generation : 0);
    node.put("NODE_MODE", STATE_NUMBERS[mode]);
  }

  mode(): DataplaneState {
    return stateOfNumber(this.open().node.get("NODE_MODE")) ?? "Off";
  }

  watchVerdicts(perSecond: number, onVerdict: (verdict: VerdictEvent) => void): { stop(): void } {
    const { programs, policies, node } = this.open();
    const ring = programs.map("events");
    if (ring.info.type !== "ringBuffer") throw errors.EBPF_KERNEL_LACKS("ring buffers");
    const reader = this.options.kernel.bpf.readRing(ring, (record) => {
      onVerdict(readVerdict(record, (hit) => policies.ruleOf(hit)));
    });
    const setRate = (rate: number) => node.put("NODE_EVENTS", rate);
    setRate(perSecond);
    return {
      stop: () => {
        setRate(0);
        reader.close();
      },
    };
  }

  flows(): FlowAccounting {
    return this.openAccounting(this.open());
  }

  fill(): MapFill[] {
    return [...(this.services?.fill() ?? []), ...this.counted];
  }

  async close(): Promise<void> {
    await this.services?.close();
    this.services = undefined;
    await this.attachments.close();
    this.closeAccounting();
    this.state?.close();
    this.state = undefined;
    this.netlink.close();
  }

  async remove(): Promise<void> {
    await this.services?.remove();
    this.services = undefined;
    for (const { ifindex, direction } of this.attachments.places()) await this.attachments.detach(ifindex, direction);
    this.closeAccounting();
    this.state?.close();
    this.state = undefined;
    this.held.clear();
    removeAll(this.options.kernel.bpf, this.options.pinDirectory);
  }

  /**
   * Order matters: members of sets before the programs that look into them, programs before the interfaces that name them, an interface's
   * policy before its program is at it. What is removed goes in the reverse order.
   */
  private async realize(delta?: ModelDelta): Promise<ObjectOutcome[]> {
    const fresh = this.state === undefined;
    const state = this.open();
    await state.migrateConntrack();
    const outcomes = await this.applyServices(state, delta);
    // Before DSR is turned on, so that no opted-out client is answered directly.
    outcomes.push(...((await this.services?.answerThroughTunnel(this.clientsInTunnel())) ?? []));
    const changed = await this.writeSets(state);
    const links = new Map(this.netlink.links().map((link) => [link.name, link]));
    const addresses = this.netlink.addresses();
    const node = { links: [...links.values()], addresses, routes: () => this.netlink.routes() };
    const wanted = desiredInterfaces(this.model, { ...node, overlay: this.options.overlay });
    outcomes.push(...unservedInterfaces(this.model, node));
    const gone = new Set(this.held.keys());
    for (const one of wanted) {
      gone.delete(one.name);
      const failed = this.hold(state, one, links.get(one.name), changed);
      outcomes.push(...one.objects.map((object) => (failed ? { ...object, failed } : object)));
    }
    for (const [id, nets] of state.policies.netSets()) await state.sets.put(id, "net", nets);
    this.writeTables(state, addresses);
    outcomes.push(this.writeClusterAddresses(state, fresh ? undefined : delta));
    this.writeNodeState(state, links.get(this.options.overlay));
    if (fresh && !this.options.startsOff) this.setMode("Active");
    outcomes.push(...this.settleUnprivileged());
    await this.moveIn(state, outcomes);
    outcomes.push(
      ...((await this.services?.attach(this.model.settings.configuration?.bpfConnectTimeLoadBalancing)) ?? []),
    );
    await this.letGo(state, gone);
    // When no packet can bring an entry back, and before a new owner of the address may send.
    await this.forgetPods(state, fresh);
    await this.dropSets(state);
    return [...outcomes, ...otherOutcomes(delta)];
  }

  /** Without a delta, what is in the kernel is compared. */
  private async applyServices(state: State, delta: ModelDelta | undefined): Promise<ObjectOutcome[]> {
    if (this.services) return delta ? this.services.apply(delta.services) : this.services.resync();
    const map = (name: string) => state.programs.map(name);
    const before = otherMapDirectories(this.options.kernel.bpf, this.options.pinDirectory);
    this.services = await EbpfServices.open({
      ...{ ...this.options, map, before, load: this.loadOptions() },
      ...{ names: this.names, sweepFlows: () => this.sweepFlows(state) },
    });
    return this.services.apply({ set: [...this.model.services.values()], remove: [] });
  }

  private open(): State {
    if (this.state) return this.state;
    const { kernel, pinDirectory } = this.options;
    const directory = mapDirectory(pinDirectory);
    const before = otherMapDirectories(kernel.bpf, pinDirectory).filter((other) => hasConntrack(kernel.bpf, other));
    kernel.bpf.makePinDirectory(directory);
    const sysctls = realSysctls(kernel.netns, this.options.netns);
    const { bpfConntrackTimeouts, bpfEnforceRPF } = this.model.settings.configuration ?? {};
    this.reversePath = REVERSE_PATH[bpfEnforceRPF ?? "Loose"];
    this.times = conntrackTimes(bpfConntrackTimeouts, (name) => sysctls.read(`netfilter/${name}`));
    const programs = Programs.load(kernel.loadObject, this.loadOptions());
    const carries = before.map((other) => new ConntrackMigration(kernel.bpf, other, (name) => programs.map(name)));
    this.state = new State(kernel, programs, { carries, names: this.names });
    return this.state;
  }

  private loadOptions(): LoadOptions {
    const { pinDirectory, maxEntries } = this.options;
    const variables = {
      ...this.fit.configuration,
      ...this.times,
      reverse_path: this.reversePath,
      ...this.options.configuration,
      vxlan_port: this.model.settings.vxlan.port,
      vxlan_vni: this.model.settings.vxlan.vni,
    };
    return { ...this.fit.load, pinDirectory: mapDirectory(pinDirectory), variables, maxEntries };
  }

  private openAccounting({ programs, node, policies }: State): EbpfFlowAccounting {
    const { bpf, loadObject } = this.options.kernel;
    this.accounting ??= new EbpfFlowAccounting({
      map: (name) => programs.map(name),
      ...{ node, names: this.names, settled: () => bpf.programsSettled() },
      sweep: openFlowSweep({ bpf, load: loadObject, options: this.loadOptions(), iterates: this.iterates }),
      isInUse: (rule) => policies.isInUse(rule),
    });
    return this.accounting;
  }

  private closeAccounting(): void {
    this.accounting?.close();
    this.accounting = undefined;
  }

  /** Before entries are removed: a life that was cut short may have left the logs on. */
  private async sweepFlows(state: State): Promise<void> {
    if (state.node.get("NODE_INTERVAL") !== 0) await this.openAccounting(state).sweep();
  }

  private async expire(state: State): Promise<MapFill> {
    const { programs, shares } = state;
    await this.sweepFlows(state);
    const before = shares.read();
    const flows = programs.map("flows");
    const { left, opened } = await expireConntrack(
      flows,
      { ...this.times, ...this.options.configuration },
      this.podsByAddress(),
    );
    shares.recount(opened, before);
    this.expiredAt = performance.now();
    return fillOf(flows, left);
  }

  private podsByAddress(): Map<string, number> {
    const found = new Map<string, number>();
    for (const { interfaceName, addresses } of this.model.endpoints.values()) {
      const ifindex = this.held.get(interfaceName)?.ifindex;
      if (ifindex !== undefined) for (const net of addresses) found.set(addressKey(netBytes(net).bytes), ifindex);
    }
    return found;
  }

  private limited({ shares }: State): LimitedWorkload[] {
    const read = shares.read();
    return [...this.model.endpoints.values()].flatMap(({ id, interfaceName }): LimitedWorkload[] => {
      const share = read.get(this.held.get(interfaceName)?.ifindex ?? 0);
      return share && share.entries >= share.limit * LIMITED_FROM ? [{ id, table: "conntrack", ...share }] : [];
    });
  }

  /** Ids of the sets whose members changed. */
  private async writeSets({ sets }: State): Promise<Set<string>> {
    const changed = new Set<string>();
    for (const { id, kind, members } of this.model.ipSets.values()) {
      if (await sets.put(id, kind, members)) changed.add(id);
    }
    return changed;
  }

  private async dropSets({ sets, policies }: State): Promise<void> {
    const own = policies.netSets();
    for (const id of sets.ids) if (!this.model.ipSets.has(id) && !own.has(id)) await sets.drop(id);
  }

  /** Gives the interface the policy it should have; why it could not, if it could not. Then what it had before stays. */
  private hold(
    state: State,
    wanted: DesiredInterface,
    link: Link | undefined,
    changedSets: Set<string>,
  ): CodedError | undefined {
    if (!link) return errors.EBPF_INTERFACE_ABSENT(wanted.name);
    const before = this.held.get(wanted.name);
    const acquired: string[] = [];
    try {
      const [arrive, leave] = [wanted.arrive, wanted.leave].map((hook) => {
        if (!hook) return undefined;
        const { failsafe, endpointToHost } = this.model.settings;
        const options: ListOptions = { failsafe, endpointToHost };
        const key = policyKey(hook, options, (id) => this.versions.get(id) ?? 0);
        const program = state.policies.acquire(key, () => policyItems(this.model, hook, options), wanted.name);
        acquired.push(key);
        return { key, program };
      });
      const same =
        before?.ifindex === link.index && before.arrive?.key === arrive?.key && before.leave?.key === leave?.key;
      const touched = [arrive, leave].some((part) => part && [...part.program.sets].some((id) => changedSets.has(id)));
      const epoch = same && !touched && before ? before.epoch : state.nextEpoch();
      const attached = before?.ifindex === link.index && before.attached;
      if (before && before.ifindex !== link.index) state.tables.interfaces.unwant(u32(before.ifindex));
      this.held.set(wanted.name, { ifindex: link.index, wanted, arrive, leave, epoch, attached });
      state.tables.interfaces.want(u32(link.index), interfaceBytes(wanted, link, { arrive, leave, epoch }));
      state.give(before);
      return undefined;
    } catch (error) {
      for (const key of acquired) state.policies.release(key);
      return wrapped(`the policy of ${wanted.name}`, error);
    }
  }

  private writeTables({ tables, shares, programs }: State, addresses: readonly InterfaceAddress[]): void {
    const { maxEntries } = programs.map("flows").info;
    const percent = this.model.settings.workloadConntrackPercent;
    const limit = percent < 100 ? Math.max(2, Math.floor((maxEntries * percent) / 100)) : UNLIMITED;
    const workloads = [...this.held.values()].filter(({ wanted }) => wanted.kind === INTERFACE_KIND.INTERFACE_WORKLOAD);
    shares.wantOnly(
      workloads.map(({ ifindex }) => ifindex),
      limit,
    );
    tables.workloads.wantOnly(
      [...this.model.endpoints.values()].flatMap(({ interfaceName, addresses }) => {
        const ifindex = this.held.get(interfaceName)?.ifindex;
        if (ifindex === undefined) return [];
        return addresses.map((net) => [Buffer.from(netBytes(net).bytes), workloadLayout.write({ ifindex })] as const);
      }),
    );
    tables.routes.wantOnly(
      routeEntries(
        this.model,
        addresses.map(({ address }) => address),
      ),
    );
    for (const table of [tables.interfaces, tables.workloads, tables.routes]) table.write();
    for (const table of [tables.routes, tables.workloads]) table.remove();
  }

  private writeClusterAddresses({ clusterAddresses }: State, delta: ModelDelta | undefined): ObjectOutcome {
    clusterAddresses.want(delta?.services ?? { set: [...this.model.services.values()], remove: [] });
    const failed = clusterAddresses.write();
    clusterAddresses.remove();
    const all = { kind: "service", id: "(cluster addresses)" } as const;
    return failed ? { ...all, failed } : all;
  }

  private writeNodeState({ node }: State, overlay: Link | undefined): void {
    node.put("NODE_OVERLAY", overlay?.index ?? 0);
    node.put("NODE_OVERLAY_MTU", overlay?.mtu ?? 0);
    node.put("NODE_DSR", this.model.settings.configuration?.bpfExternalServiceMode === "DSR" ? 1 : 0);
  }

  /** Not before our programs act: it cannot be taken back. */
  private settleUnprivileged(): ObjectOutcome[] {
    const { bpfDisableUnprivileged = true } = this.model.settings.configuration ?? {};
    if (!bpfDisableUnprivileged || this.mode() === "Off") return [];
    try {
      this.options.disableUnprivileged?.();
      return [];
    } catch (error) {
      const failed = wrapped("kernel.unprivileged_bpf_disabled", error);
      return [{ kind: "interface", id: "(who may load programs)", failed }];
    }
  }

  private clientsInTunnel(): readonly Net[] {
    return this.model.settings.configuration?.bpfDSROptoutCIDRs ?? [];
  }

  /**
   * Programs of the layout before know flows that began until ours stood in their place. Those come over last; a packet of one is not taken
   * for a stranger's until then, and is sent again.
   */
  private async moveIn(state: State, outcomes: ObjectOutcome[]): Promise<void> {
    await state.migrateConntrack();
    state.node.put("NODE_MIGRATING", state.isMoving ? 2 : 0);
    state.shareConntrack();
    await this.attachAll(state, outcomes);
    if (!state.isMoving) return;
    state.node.put("NODE_MIGRATING", 1);
    await state.migrateConntrack();
    state.node.put("NODE_MIGRATING", 0);
    if ([...this.held.values()].every(({ attached }) => attached)) state.hasMoved();
  }

  private async attachAll({ programs }: State, outcomes: ObjectOutcome[]): Promise<void> {
    for (const held of this.held.values()) {
      if (held.attached) continue;
      const { wanted, ifindex } = held;
      try {
        for (const direction of ["ingress", "egress"] as const) {
          await this.attachments.attach(ifindex, direction, programs.at(wanted.place, direction));
        }
        held.attached = true;
      } catch (error) {
        const failed = wrapped(`programs at ${wanted.name}`, error);
        const isOfIt = ({ kind, id }: ObjectOutcome) =>
          wanted.objects.some((object) => object.kind === kind && object.id === id);
        for (const outcome of outcomes) if (isOfIt(outcome)) outcome.failed ??= failed;
      }
    }
  }

  /** Not one entry passes for a connection of whoever has the address next. A new life knows by itself only of this node's own blocks. */
  private async forgetPods(state: State, fresh: boolean): Promise<void> {
    if (this.released.size === 0 && !fresh) return;
    const { programs } = state;
    await this.sweepFlows(state);
    const empty = fresh ? emptyAddresses(this.model) : () => false;
    const isGone = (address: string) => this.released.has(address) || empty(address);
    await deletePodConntrack(isGone, (name) => programs.map(name));
    const conntrack = this.options.kernel.conntrack(this.options.netns);
    try {
      await deletePodNfConntrack(isGone, conntrack);
    } finally {
      conntrack.close();
    }
    this.released.clear();
  }

  private async letGo(state: State, gone: Set<string>): Promise<void> {
    for (const name of gone) {
      const held = this.held.get(name)!;
      this.held.delete(name);
      state.give(held);
      // It may only have got another name.
      if ([...this.held.values()].some(({ ifindex }) => ifindex === held.ifindex)) continue;
      for (const direction of ["ingress", "egress"] as const) await this.attachments.detach(held.ifindex, direction);
      state.tables.interfaces.unwant(u32(held.ifindex));
    }
    state.tables.interfaces.remove();
    state.flush();
  }
}

/** What is in the kernel, opened. */
class State {
  readonly programs: Programs;
  readonly node: NodeState;
  readonly clusterAddresses: ClusterAddresses;
  readonly policies: PolicyPrograms;
  readonly sets: SetMap;
  readonly shares: WorkloadShares;
  readonly tables: Record<"interfaces" | "workloads" | "routes", MapTable>;
  private epoch: number;
  private retired: readonly number[] = [];
  private carries: readonly ConntrackMigration[];

  constructor(
    kernel: Kernel,
    programs: Programs,
    { carries, names }: { carries: readonly ConntrackMigration[]; names: FlowNames },
  ) {
    this.programs = programs;
    this.carries = carries;
    this.node = new NodeState(programs.map("node"));
    this.clusterAddresses = new ClusterAddresses(programs.map("cluster_addresses"));
    const map = (name: string) => programs.map(name);
    const used = { works: map("works"), steps: map("steps"), policies: map("policies"), ip_sets: map("ip_sets") };
    this.policies = new PolicyPrograms(kernel.bpf, used, names);
    this.sets = new SetMap(map("ip_sets"));
    this.shares = new WorkloadShares(map("workload_shares"));
    const tables = { interfaces: map("interfaces"), workloads: map("workloads"), routes: map("routes") };
    this.tables = {
      interfaces: new MapTable(tables.interfaces),
      workloads: new MapTable(tables.workloads),
      routes: new MapTable(tables.routes),
    };
    for (const table of Object.values(this.tables)) table.resync();
    this.epoch = this.node.get("NODE_EPOCH");
  }

  /** Whether programs of another layout may still stand where ours should. */
  get isMoving(): boolean {
    return this.carries.length > 0;
  }

  /** What programs of other layouts have learnt since the last time. */
  async migrateConntrack(): Promise<void> {
    for (const carry of this.carries) await carry.copy();
  }

  /** From here on our own programs learn too. */
  shareConntrack(): void {
    for (const carry of this.carries) carry.startSharing();
  }

  hasMoved(): void {
    for (const carry of this.carries) carry.close();
    this.carries = [];
  }

  close(): void {
    this.hasMoved();
    this.programs.close();
  }

  /** Flows remember epochs, also of an earlier life and of interfaces that are gone: none may ever mean something else. */
  nextEpoch(): number {
    this.epoch++;
    this.node.put("NODE_EPOCH", this.epoch);
    return this.epoch;
  }

  give(held: HeldInterface | undefined): void {
    if (held?.arrive) this.policies.release(held.arrive.key);
    if (held?.leave) this.policies.release(held.leave.key);
  }

  flush(): void {
    this.retired = this.policies.flush(this.retired);
  }
}

/** Addresses of this node's own blocks that nothing has: neither a pod nor the node's tunnel. */
function emptyAddresses({ routes }: ModelCopy): (address: string) => boolean {
  const blocks = new NetTable();
  for (const { cidr, kind } of routes.values()) if (kind === "blackhole") blocks.add(cidr, true);
  return (text) => {
    const address = parseAddress(text);
    if (!address || !blocks.find(address)) return false;
    return !routes.has(`${text}/${address.family.bits}`);
  };
}

function interfaceBytes(
  { kind, mac }: DesiredInterface,
  link: Link,
  { arrive, leave, epoch }: Pick<HeldInterface, "arrive" | "leave" | "epoch">,
): Buffer {
  return interfaceLayout.write({
    kind,
    epoch,
    policyIn: arrive?.program.slot ?? 0,
    policyOut: leave?.program.slot ?? 0,
    podMac: macBytes(mac),
    hostMac: macBytes(link.mac),
  });
}

/** Policies, profiles, sets and routes are in effect where the interfaces that use them are. */
function otherOutcomes(delta: ModelDelta | undefined): ObjectOutcome[] {
  if (!delta) return [];
  return [
    ...delta.policies.set.map(({ id }) => ({ kind: "policy" as const, id })),
    ...delta.profiles.set.map(({ id }) => ({ kind: "profile" as const, id })),
    ...delta.ipSets.set.map(({ id }) => ({ kind: "ipSet" as const, id })),
    ...delta.routes.set.map(({ cidr }) => ({ kind: "route" as const, id: cidr })),
  ];
}
