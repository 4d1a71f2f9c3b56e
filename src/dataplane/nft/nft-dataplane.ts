import { isPodInterface } from "../../api/protocol/pod-network.ts";
import type { ModelDelta, WorkloadEndpoint } from "../../calc/model.ts";
import { ModelCopy } from "../../calc/model-copy.ts";
import type { ConntrackPort } from "../../kernel/conntrack/conntrack-port.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { NetlinkEvent, NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import type { Netns } from "../../kernel/netns/netns-port.ts";
import type { NftObject, NftPort } from "../../kernel/nft/nft-port.ts";
import type { Watch } from "../../kernel/sys.ts";
import type { ApplyReport, DataplaneDriver, LimitedWorkload, SweepReport, Table, TableName } from "../contract.ts";
import type { FlowAccounting } from "../flow-sums.ts";
import { COUNTING, countingSysctls, realSysctls, type Sysctls, settleSysctls } from "../net/sysctls.ts";
import { readActualRuleset } from "./actual-ruleset.ts";
import { EVERYTHING, type Touched, touchedBy } from "./affected-connections.ts";
import { ConnectionShares, withConnectionLimit } from "./connection-limit.ts";
import { desiredRuleset, type HostInterface } from "./desired-ruleset.ts";
import { withDenials } from "./flows/denials.ts";
import { type FlowContext, type FlowLogOptions, NftFlowAccounting } from "./flows/flow-accounting.ts";
import { closeForeignForward, openForeignForward } from "./foreign-forward.ts";
import { isOfPolicy } from "./policy-chains.ts";
import { applyReport } from "./report.ts";
import { revokeConnections } from "./revoke-connections.ts";
import type { NftChain } from "./ruleset.ts";
import { showTable } from "./show.ts";
import { NOTHING, stampOf, transaction, type Written } from "./transaction.ts";

export interface NftOptions {
  kernel: Kernel;
  /** Name of our table, of family `inet`; everything in it is ours. */
  table: string;
  /** The node's network namespace, where it is not this process's. */
  netns?: Netns;
  /** Settings of that namespace (default: as the kernel shows them there). */
  sysctls?: Sysctls;
  /** Absent: this one never counts for flow logs. */
  flowLogs?: FlowLogOptions;
}

export function createNftDataplane(options: NftOptions): DataplaneDriver {
  return new NftDataplane(options);
}

class NftDataplane implements DataplaneDriver {
  readonly kind = "Nftables";
  readonly flows?: () => FlowAccounting;
  private readonly table: string;
  private readonly nft: NftPort;
  private readonly netlink: NetlinkPort;
  private readonly conntrack: ConntrackPort;
  private readonly shares: ConnectionShares;
  private readonly sysctls: Sysctls;
  private readonly accounting: NftFlowAccounting | undefined;
  private readonly watch: Watch;
  private readonly model = new ModelCopy();
  /** Undefined: not looked yet, or not sure any more. */
  private written: Written | undefined;
  /** Chains nft refused, with its reason. They deny until their policy changes, or until the next look at everything. */
  private readonly refused = new Map<string, Error>();
  /** What an earlier process left; reported by `sweep`. */
  private leftovers: string[] = [];
  /** Whether connection tracking has connections that policy denies now. */
  private anyDenied = true;
  /** Whether denials are counted for flow logs. */
  private recorded: boolean;
  /** Another number after each delta. */
  private epoch = 0;
  private started = false;
  private closed = false;
  private turn: Promise<unknown> = Promise.resolve();

  constructor({ kernel, table, netns, sysctls, flowLogs }: NftOptions) {
    this.table = table;
    this.nft = kernel.nft(netns);
    this.netlink = kernel.netlink(netns);
    this.conntrack = kernel.conntrack(netns);
    this.shares = new ConnectionShares(this.conntrack);
    this.sysctls = sysctls ?? realSysctls(kernel.netns, netns);
    this.accounting = flowLogs && new NftFlowAccounting(flowLogs, this.flowContext(netns));
    // An agent that was killed counts on: until it is known whether it shall, nothing that is not read yet may go.
    this.recorded = this.accounting?.wasCounting() ?? false;
    const { accounting } = this;
    if (accounting) this.flows = () => accounting;
    this.watch = this.netlink.monitor((event) => this.onEvent(event));
  }

  apply(delta: ModelDelta): Promise<ApplyReport> {
    return this.inTurn(async () => {
      const before = endpointsBefore(this.model, delta);
      this.model.apply(delta);
      this.epoch++;
      // A part of the policies may allow what all of them forbid: nothing is touched before all are known.
      if (!this.model.inSync) return { objects: [] };
      // What was refused may be the fault of what it came with: everything is tried again.
      this.refused.clear();
      const touched = this.started ? touchedBy(before, this.model, delta) : EVERYTHING;
      const failed = await this.realize(touched);
      return applyReport(this.model, delta, this.refused, failed);
    });
  }

  resync(): Promise<void> {
    return this.inTurn(async () => {
      if (!this.started) return;
      this.refused.clear();
      this.written = undefined;
      const failed = await this.realize(EVERYTHING);
      if (failed) throw failed;
      this.countConnections();
      await openForeignForward(this.nft, this.table);
    });
  }

  checkShares(): Promise<LimitedWorkload[]> {
    return this.inTurn(async () => {
      if (!this.started) return [];
      if (await this.shares.check(this.model)) {
        const failed = await this.write();
        if (failed) throw failed;
      }
      return this.shares.limited;
    });
  }

  sweep(): Promise<SweepReport> {
    return this.inTurn(async () => {
      const removed = this.leftovers;
      this.leftovers = [];
      return { removed };
    });
  }

  show(table: TableName): Promise<Table> {
    const flows = () => this.conntrack.list();
    return showTable(table, {
      model: this.model,
      written: this.written ?? NOTHING,
      conntrack: flows,
      listed: () => this.listed(),
    });
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.watch.close();
    await this.accounting?.close();
    await this.turn.catch(() => undefined);
    this.nft.close();
    this.conntrack.close();
    this.netlink.close();
  }

  async remove(): Promise<void> {
    await this.accounting?.discard();
    await this.inTurn(async () => {
      this.recorded = false;
      await closeForeignForward(this.nft, this.table);
      await this.nft.run(`add table inet ${this.table}\ndelete table inet ${this.table}`);
      this.written = undefined;
      this.started = false;
    });
  }

  /** Undefined: all of it is in effect, but for what is in `refused`. */
  private async realize(touched: Touched): Promise<Error | undefined> {
    const failed = await this.write();
    if (failed) return failed;
    if (!this.started) {
      this.started = true;
      this.countConnections();
      await openForeignForward(this.nft, this.table);
    }
    const { conntrack, netlink } = this;
    const { anyDenied } = this;
    this.anyDenied = await revokeConnections(this.model, { ...touched, anyDenied }, { conntrack, netlink });
    if (this.anyDenied) this.accounting?.sweepSoon();
    return undefined;
  }

  private async write(): Promise<Error | undefined> {
    const fresh = this.written === undefined;
    const first = await this.attempt(new Set());
    if (!first) return undefined;
    // Another program may have changed our table: once more, from the actual rules.
    if (!fresh) {
      this.written = undefined;
      if (!(await this.attempt(new Set()))) return undefined;
    }
    return this.writeWithout(first);
  }

  /** A policy nft refuses denies, and does not keep the others. */
  private async writeWithout(reason: Error): Promise<Error | undefined> {
    const suspects = [...this.wanted(new Set()).rules.chains.values()].filter(isOfPolicy);
    const isNew = (chain: NftChain) => this.written?.chains.get(chain.name)?.stamp !== stampOf(chain);
    const names = suspects.filter(isNew).map(({ name }) => name);
    const closed = new Set(names);
    const failed = await this.attempt(closed);
    if (failed) return failed;
    await this.open(closed, names, reason);
    return undefined;
  }

  private async open(closed: Set<string>, names: readonly string[], reason: Error): Promise<void> {
    for (const name of names) closed.delete(name);
    const failed = await this.attempt(closed);
    if (!failed) return;
    for (const name of names) closed.add(name);
    if (names.length === 1) {
      this.refused.set(names[0]!, reason);
      return;
    }
    const middle = Math.ceil(names.length / 2);
    await this.open(closed, names.slice(0, middle), failed);
    await this.open(closed, names.slice(middle), failed);
  }

  private async attempt(closed: ReadonlySet<string>): Promise<Error | undefined> {
    try {
      const found = this.written ?? readActualRuleset(await this.listed());
      const { rules, causes } = this.wanted(closed);
      const { commands, removed, after } = transaction(this.table, rules, found);
      if (this.recorded) this.accounting?.causes.note(causes);
      if (commands.length > 0) await this.nft.run(commands.join("\n"));
      if (!this.written) this.leftovers.push(...removed);
      this.written = after;
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  private wanted(closed: ReadonlySet<string>) {
    const rules = desiredRuleset(this.model, { hostInterfaces: hostInterfaces(this.netlink, this.model), closed });
    return withDenials(withConnectionLimit(rules, this.shares.limit(this.model)), this.recorded);
  }

  /** Only connections that begin after it are counted. What cannot be set does not keep policy from the kernel: flow logs say so when they begin. */
  private countConnections(): void {
    try {
      settleSysctls(this.sysctls, countingSysctls());
    } catch {
      // As above.
    }
  }

  private flowContext(netns: Netns | undefined): FlowContext {
    return {
      ...{ model: this.model, netlink: this.netlink, netns, table: this.table },
      epoch: () => this.epoch,
      hostInterfaces: () => hostInterfaces(this.netlink, this.model),
      record: (on) =>
        this.inTurn(async () => {
          if (this.recorded === on) return;
          this.recorded = on;
          const failed = this.started ? await this.write() : undefined;
          if (failed) throw failed;
        }),
      isCounting: () => this.sysctls.read(COUNTING) === "1",
    };
  }

  private async listed(): Promise<NftObject[]> {
    const there = await this.nft.tables();
    const ours = there.some(({ family, name }) => family === "inet" && name === this.table);
    return ours ? this.nft.list(`list table inet ${this.table}`) : [];
  }

  /** Host endpoints may be selected by address: when one comes or goes, the endpoint of an interface may change. */
  private onEvent(event: NetlinkEvent): void {
    if (event.kind !== "address" && event.kind !== "lost") return;
    const byAddress = [...this.model.hostEndpoints.values()].some(({ interfaceName }) => interfaceName === null);
    if (!byAddress || !this.started) return;
    void this.inTurn(async () => {
      if (this.started) await this.realize(EVERYTHING);
    }).catch(() => undefined);
  }

  private inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.turn.then(act, act);
    this.turn = turn.catch(() => undefined);
    return turn;
  }
}

/** The pods a delta speaks of, as they were. */
function endpointsBefore(model: ModelCopy, { endpoints }: ModelDelta): Map<string, WorkloadEndpoint> {
  const ids = [...endpoints.set.map(({ id }) => id), ...endpoints.remove];
  return new Map(ids.flatMap((id) => (model.endpoints.has(id) ? [[id, model.endpoints.get(id)!] as const] : [])));
}

function hostInterfaces(netlink: NetlinkPort, { settings }: ModelCopy): HostInterface[] {
  const addresses = netlink.addresses();
  return netlink
    .links()
    .filter(({ name }) => name !== "lo" && !isPodInterface(name, settings.podInterfacePrefixes))
    .map(({ name, index }) => ({
      name,
      addresses: addresses.filter(({ device }) => device === index).map(({ address }) => address),
    }));
}
