import type { Net, ServicePort, TableDelta } from "../../../calc/model.ts";
import { backendLayout, type Frontend, frontendKeyLayout, frontendLayout } from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import { type Clock, sleep, systemClock } from "../../../kit/clock.ts";
import type { CodedError } from "../../../kit/errors.ts";
import type { ObjectOutcome } from "../../contract.ts";
import { errors } from "../errors.ts";
import { fillOf, type MapFill } from "../map-fill.ts";
import { wrapped } from "../map-table.ts";
import { BackendLists, LIST_GRACE_MS } from "./backend-lists.ts";
import { FrontendOwners } from "./frontend-owners.ts";
import type { RemovedByService } from "./removed-backends.ts";
import { ServiceChange } from "./service-change.ts";
import { type FrontendEntry, ServiceFrontends } from "./service-frontends.ts";
import { frontendText, type ServiceRow, serviceRow, sourceRange } from "./service-rows.ts";
import { type Entries, isFull, writeEach } from "./service-writes.ts";
import { NO_SERVICE, SourceRanges } from "./source-ranges.ts";

export interface ServiceTablesOptions {
  maps: Record<"frontends" | "backends" | "source_ranges", BpfMap>;
  /** Backends that services do not have any more, and that no packet is sent to as the first of a flow. `apply` waits for it. */
  onBackendsRemoved(gone: RemovedByService): Promise<void>;
  /** Before anything in the kernel has the number. */
  onNumber?(number: number, name: string): void;
  clock?: Clock;
}

/** One service on its way into the maps. */
interface Plan {
  readonly row: ServiceRow;
  readonly number: number;
  readonly frontends: readonly FrontendEntry[];
  /** Lists that are not written yet. */
  readonly lists: readonly (readonly [number, Buffer])[];
  failed?: CodedError;
}

/** So many services are put together before the kernel gets them: the event loop turns in between. */
const AT_ONCE = 2048;

/**
 * Services in the maps the programs look into. Numbers of services and of lists are read back after a restart, so that no flow and no
 * client's choice is lost by one.
 *
 * Order: lists of backends, source ranges, frontends; then what goes, in reverse, lists after a grace. A changed list is another list, so a
 * packet sees the whole of one or the whole of the other. When `apply` is over, no packet is sent to a removed backend.
 */
export class ServiceTables {
  private readonly options: ServiceTablesOptions;
  private readonly clock: Clock;
  private readonly lists: BackendLists;
  private readonly ranges: SourceRanges;
  private readonly frontends: ServiceFrontends;
  private readonly claims = new FrontendOwners();
  private readonly rows = new Map<string, ServiceRow>();
  private readonly numbers = new Map<string, number>();
  private readonly taken = new Set<number>();
  /** Services that are not, or not wholly, in the maps, and are tried again with every change. */
  private readonly waiting = new Set<string>();

  constructor(options: ServiceTablesOptions) {
    const { maps, clock = systemClock } = options;
    this.options = options;
    this.clock = clock;
    this.lists = new BackendLists(maps.backends, clock);
    this.ranges = new SourceRanges(maps.source_ranges);
    this.frontends = new ServiceFrontends(maps.frontends);
  }

  /** Reads what is in the kernel. What is there and not wanted is only removed by `sweep`. */
  async readMaps(): Promise<void> {
    await this.lists.resync();
    this.ranges.resync();
    await this.frontends.resync();
  }

  /** Whether the kernel knows no service. */
  get isEmpty(): boolean {
    return this.frontends.size === 0;
  }

  async apply({ set, remove }: TableDelta<ServicePort>): Promise<ObjectOutcome[]> {
    const change = new ServiceChange(this.frontends);
    const touched = new Set(this.waiting);
    for (const id of remove) this.unwant(id, change, touched);
    for (const service of set) this.want(service, change, touched);
    return this.realize(touched, change);
  }

  /** Clients in these, and no others, are answered through the node they asked, also where others are answered straight. */
  async answerThroughTunnel(clients: readonly Net[]): Promise<void> {
    const ranges = clients.map(sourceRange);
    const { keys, values } = this.ranges.missing(NO_SERVICE, ranges);
    if (keys.length > 0) await this.options.maps.source_ranges.updatePacked(keys, values);
    this.ranges.wrote(NO_SERVICE, ranges);
    await this.ranges.keep(NO_SERVICE, ranges);
  }

  /** Compares everything with the kernel and mends what differs. */
  async resync(): Promise<ObjectOutcome[]> {
    await this.readMaps();
    return this.realize(new Set(this.rows.keys()), new ServiceChange(this.frontends));
  }

  /** Removes entries that are not desired; how many. Only in sync: before, their service may only be late. */
  async sweep(): Promise<number> {
    const change = new ServiceChange(this.frontends);
    for (const key of this.frontends.keys()) {
      if (this.claims.winner(key) !== undefined) continue;
      const { service, affinity } = this.frontends.get(key)!;
      change.leaving.add(key);
      if (this.taken.has(service)) continue;
      change.noteBefore({ number: service, affinity, protocol: key.charCodeAt(frontendKeyLayout.at.protocol) }, [key]);
    }
    await this.realize(new Set(), change);
    const used = this.frontends.lists();
    const left = [...this.lists.numbers].filter((list) => !used.has(list) && !this.lists.isRetired(list));
    for (const list of left) this.lists.retire(list);
    return change.leaving.size + left.length + (await this.ranges.keepOnly(new Set([NO_SERVICE, ...this.taken])));
  }

  /** How full the maps are, with what is on its way out. */
  fill(): MapFill[] {
    const { frontends, backends, source_ranges: ranges } = this.options.maps;
    return [
      fillOf(frontends, this.frontends.size),
      fillOf(backends, this.lists.entries),
      fillOf(ranges, this.ranges.size),
    ];
  }

  private unwant(id: string, change: ServiceChange, touched: Set<string>): void {
    const row = this.rows.get(id);
    if (!row) return;
    for (const other of this.claims.change(row, undefined)) touched.add(other);
    this.leave(row, change);
    const number = this.numbers.get(id);
    if (number !== undefined) this.taken.delete(number);
    this.numbers.delete(id);
    this.rows.delete(id);
    this.waiting.delete(id);
    touched.delete(id);
  }

  private want(service: ServicePort, change: ServiceChange, touched: Set<string>): void {
    let row: ServiceRow;
    try {
      row = serviceRow(service);
    } catch (error) {
      change.refused.set(service.id, wrapped(`service ${service.id}`, error));
      return;
    }
    const before = this.rows.get(row.id);
    for (const other of this.claims.change(before, row)) touched.add(other);
    if (before) this.leave(before, change);
    this.rows.set(row.id, row);
    touched.add(row.id);
  }

  private leave(row: ServiceRow, change: ServiceChange): void {
    const number = this.numbers.get(row.id);
    if (number === undefined) return;
    const keys = keysOf(row);
    change.noteBefore({ ...row, number }, keys);
    for (const key of keys) change.leaving.add(key);
  }

  private async realize(ids: ReadonlySet<string>, change: ServiceChange): Promise<ObjectOutcome[]> {
    await this.lists.flush();
    const outcomes: ObjectOutcome[] = [...change.refused].map(([id, failed]) => ({ kind: "service", id, failed }));
    const order = [...ids];
    for (let at = 0; at < order.length; at += AT_ONCE) {
      const plans = order.slice(at, at + AT_ONCE).map((id) => this.plan(this.rows.get(id)!, change));
      await this.write(plans);
      for (const plan of plans) {
        change.noteAfter(plan.number, keysOf(plan.row), plan.lists);
        outcomes.push(this.outcomeOf(plan));
      }
    }
    await this.frontends.remove([...change.leaving].filter((key) => this.claims.winner(key) === undefined));
    const gone = change.retire(this.lists);
    for (const id of ids) await this.ranges.keep(this.numbers.get(id)!, this.rows.get(id)!.ranges);
    for (const number of change.removed) await this.ranges.keep(number, []);
    if (gone.size > 0) await this.options.onBackendsRemoved(gone);
    return outcomes;
  }

  private plan(row: ServiceRow, change: ServiceChange): Plan {
    const keys = keysOf(row);
    const number = this.numberOf(row, keys);
    const before = change.noteBefore({ ...row, number }, keys);
    const lists: [number, Buffer][] = [];
    const listOf = (packed: Buffer) => {
      if (packed.length === 0) return 0;
      for (const list of before) if (this.lists.get(list)?.equals(packed)) return list;
      const list = this.lists.nextNumber();
      lists.push([list, packed]);
      return list;
    };
    const frontends = this.valuesOf(row, number, listOf(row.cluster), listOf(row.local));
    return { row, number, frontends, lists };
  }

  /** The one it has, or, after a restart, the one its frontends have. */
  private numberOf({ id, name }: ServiceRow, keys: readonly string[]): number {
    const own = this.numbers.get(id);
    if (own !== undefined) return own;
    const found = keys
      .filter((key) => this.claims.winner(key) === id)
      .map((key) => this.frontends.get(key)?.service)
      .find((number) => number !== undefined && !this.taken.has(number));
    const number = found ?? this.frontends.nextNumber();
    this.numbers.set(id, number);
    this.taken.add(number);
    if (name !== undefined) this.options.onNumber?.(number, name);
    return number;
  }

  private async write(plans: readonly Plan[]): Promise<void> {
    const { frontends, backends, source_ranges: ranges } = this.options.maps;
    await this.writeTo(backends, plans, ({ lists }) => this.entriesOf(lists));
    const fitting = () => plans.filter(({ failed }) => !failed);
    for (const { lists } of fitting()) for (const list of lists) this.lists.wrote(...list);
    await this.writeTo(ranges, plans, ({ number, row }) => this.ranges.missing(number, row.ranges));
    for (const { number, row } of fitting()) this.ranges.wrote(number, row.ranges);
    await this.writeTo(frontends, plans, ({ frontends: own }) => this.frontends.missing(own));
    for (const { row, failed, frontends: own } of plans) {
      if (failed) this.frontends.resyncEntries(keysOf(row));
      else this.frontends.wrote(own);
    }
  }

  private entriesOf(lists: Plan["lists"]): Entries {
    const parts = lists.map((list) => this.lists.entriesOf(...list));
    if (parts.length === 1) return parts[0]!;
    return {
      keys: Buffer.concat(parts.map(({ keys }) => keys)),
      values: Buffer.concat(parts.map(({ values }) => values)),
    };
  }

  /** What fails is left out of what comes after. Of a service whose frontends do not all fit, those that do are there. */
  private async writeTo(map: BpfMap, plans: readonly Plan[], entriesOf: (plan: Plan) => Entries): Promise<void> {
    const todo = plans.filter(({ failed }) => !failed);
    const makeRoom = async () => {
      if (this.lists.waiting === 0) return;
      await sleep(this.clock, LIST_GRACE_MS);
      await this.lists.flush();
    };
    const undo = map !== this.options.maps.frontends;
    const failed = await writeEach(map, todo.map(entriesOf), { undo, makeRoom });
    for (const [index, error] of failed) todo[index]!.failed = refusal(map, todo[index]!.row.id, error);
  }

  private valuesOf(row: ServiceRow, service: number, clusterList: number, localList: number): FrontendEntry[] {
    const { size } = backendLayout;
    const lists = {
      clusterList,
      clusterCount: row.cluster.length / size,
      localList,
      localCount: row.local.length / size,
    };
    return row.frontends
      .filter(({ key }) => this.claims.winner(key) === row.id)
      .map(({ key, flags }) => [key, packFrontend({ service, flags, affinity: row.affinity, ...lists })] as const);
  }

  private outcomeOf({ row, failed }: Plan): ObjectOutcome {
    if (failed) this.waiting.add(row.id);
    else this.waiting.delete(row.id);
    const lost = keysOf(row).find((key) => this.claims.winner(key) !== row.id);
    const taken = lost && errors.SERVICE_ADDRESS_TAKEN(row.id, frontendText(lost), this.claims.winner(lost)!);
    const why = failed ?? taken;
    return why ? { kind: "service", id: row.id, failed: why } : { kind: "service", id: row.id };
  }
}

/** As the layout writes it, but out of the pool. */
function packFrontend(frontend: Frontend): Buffer {
  const bytes = Buffer.allocUnsafe(frontendLayout.size);
  for (const [name, at] of FRONTEND_FIELDS) bytes.writeUInt32LE(frontend[name], at);
  return bytes;
}

const FRONTEND_FIELDS = Object.entries(frontendLayout.at) as [keyof Frontend, number][];

function keysOf(row: ServiceRow): string[] {
  return row.frontends.map(({ key }) => key);
}

function refusal(map: BpfMap, id: string, error: unknown): CodedError {
  const { name, maxEntries } = map.info;
  return isFull(error) ? errors.SERVICE_MAP_FULL(id, name, maxEntries).from(error) : wrapped(`service ${id}`, error);
}
