import type { Net, ServicePort, TableDelta } from "../../../calc/model.ts";
import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import type { LoadOptions } from "../../../kernel/bpf/object.ts";
import type { ConntrackPort } from "../../../kernel/conntrack/conntrack-port.ts";
import type { SocketsPort } from "../../../kernel/conntrack/sockets-port.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Netns } from "../../../kernel/netns/netns-port.ts";
import type { ObjectOutcome } from "../../contract.ts";
import type { FlowNames } from "../flows/flow-names.ts";
import type { MapFill } from "../map-fill.ts";
import { wrapped } from "../map-table.ts";
import { migrateServices } from "./migrate-services.ts";
import {
  closeUdpSockets,
  deleteAffinities,
  deleteUdpConntrack,
  deleteUdpNfConntrack,
  type RemovedByService,
} from "./removed-backends.ts";
import { ServiceTables } from "./service-tables.ts";
import { SocketHooks, type SocketTranslation } from "./socket-hooks.ts";

export interface EbpfServicesOptions {
  kernel: Kernel;
  pinDirectory: string;
  netns?: Netns;
  /** Group of the node's own processes; absent: their sockets are not translated. */
  cgroup?: string;
  load: LoadOptions;
  map(name: string): BpfMap;
  /** Where maps of other layouts are pinned, of a release before this one. */
  before?: readonly string[];
  names: FlowNames;
  /** Before conntrack entries are removed that may still count. */
  sweepFlows(): Promise<void>;
}

/** Everything of the eBPF plane that is about services and not about packets: tables, sockets, and what a backend leaves behind. */
export class EbpfServices {
  private readonly options: EbpfServicesOptions;
  private readonly tables: ServiceTables;
  private readonly hooks: SocketHooks | undefined;
  private readonly sockets: SocketsPort;
  private readonly conntrack: ConntrackPort;
  /** Backends whose flows and sockets are still to be ended. */
  private readonly ending: RemovedByService[] = [];
  private turn: Promise<void> | undefined;

  private constructor(options: EbpfServicesOptions) {
    const { kernel, map, cgroup, netns } = options;
    this.options = options;
    this.sockets = kernel.sockets(netns);
    this.conntrack = kernel.conntrack(netns);
    this.hooks = cgroup === undefined ? undefined : new SocketHooks({ ...options, cgroup });
    this.tables = new ServiceTables({
      maps: { frontends: map("frontends"), backends: map("backends"), source_ranges: map("source_ranges") },
      onBackendsRemoved: (gone) => this.clear(gone),
      onNumber: (number, name) => options.names.addService(number, name),
    });
  }

  static async open(options: EbpfServicesOptions): Promise<EbpfServices> {
    const { kernel, map, before = [] } = options;
    const plane = new EbpfServices(options);
    await plane.tables.readMaps();
    if (plane.tables.isEmpty) {
      for (const directory of before) await migrateServices(kernel.bpf, directory, map);
      await plane.tables.readMaps();
    }
    return plane;
  }

  async apply(delta: TableDelta<ServicePort>): Promise<ObjectOutcome[]> {
    return this.tables.apply(delta);
  }

  /** Clients that are never answered straight. Nothing is said of them unless it failed: then those are, who were before. */
  async answerThroughTunnel(clients: readonly Net[]): Promise<ObjectOutcome[]> {
    try {
      await this.tables.answerThroughTunnel(clients);
      return [];
    } catch (error) {
      return [{ kind: "service", id: "(clients never answered straight)", failed: wrapped("their prefixes", error) }];
    }
  }

  /** Attaches the socket programs. Only once the maps are filled, so that no connection is translated by half of the services. */
  async attach(translates: SocketTranslation = "Enabled"): Promise<ObjectOutcome[]> {
    const sockets = { kind: "service", id: "(sockets of the node)" } as const;
    try {
      await this.hooks?.attach(translates);
      return [sockets];
    } catch (error) {
      return [{ ...sockets, failed: wrapped("the hooks at the node's sockets", error) }];
    }
  }

  async resync(): Promise<ObjectOutcome[]> {
    await this.settled();
    return this.tables.resync();
  }

  sweep(): Promise<number> {
    return this.tables.sweep();
  }

  /** How full the maps of services are. */
  fill(): MapFill[] {
    return this.tables.fill();
  }

  /** When flows and sockets of backends that are gone have been ended, or could not be: those are tried again with the next change. */
  async settled(): Promise<void> {
    if (this.ending.length === 0) return;
    this.turn ??= this.endAll();
    await this.turn;
  }

  async close(): Promise<void> {
    await this.settled();
    await this.hooks?.close();
    this.sockets.close();
    this.conntrack.close();
  }

  async remove(): Promise<void> {
    await this.hooks?.remove();
    this.sockets.close();
    this.conntrack.close();
  }

  /** Affinities and socket choices are deleted before the change is over: no packet is sent to the backend after it. Conntrack entries are many, and are deleted soon after. */
  private async clear(gone: RemovedByService): Promise<void> {
    await deleteAffinities(gone, this.options.map("affinities"), this.options.map("socket_choices"));
    if (![...gone.values()].some(({ protocol }) => protocol === UDP)) return;
    this.ending.push(gone);
    void this.settled();
  }

  private async endAll(): Promise<void> {
    const { map } = this.options;
    try {
      for (let gone = this.ending[0]; gone; gone = this.ending[0]) {
        await this.options.sweepFlows();
        await deleteUdpConntrack(gone, map("flows"));
        await deleteUdpNfConntrack(gone, map("frontends"), this.conntrack);
        await closeUdpSockets(gone, map("socket_peers"), this.sockets);
        this.ending.shift();
      }
    } catch {
      // Unused conntrack entries expire by themselves; the next change tries again.
    } finally {
      // In the same tick in which the last one was done: a later caller begins another turn.
      this.turn = undefined;
    }
  }
}

const UDP = 17;
