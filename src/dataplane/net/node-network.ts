import { isOurInterface } from "../../api/protocol/pod-network.ts";
import type { ModelDelta, Net } from "../../calc/model.ts";
import { applyTable, ModelCopy } from "../../calc/model-copy.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Link, NetlinkEvent, NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import type { Netns } from "../../kernel/netns/netns-port.ts";
import type { Watch } from "../../kernel/sys.ts";
import { CodedError } from "../../kit/errors.ts";
import type { ApplyReport, ObjectOutcome, SweepReport } from "../contract.ts";
import { desiredRoute, needsIpip, needsOverlay } from "./desired-routes.ts";
import { errors } from "./errors.ts";
import { desiredIpip, IPIP, settleIpip } from "./ipip.ts";
import { desiredOverlay, desiredPeers, type StalePeers, settleOverlay, settlePeers } from "./overlay.ts";
import { configuredSources, type RouteSources, sourcesOfNode } from "./route-sources.ts";
import { RouteTable } from "./route-table.ts";
import { nodeSysctls, podSysctls, realSysctls, type Sysctls, settleSysctls, settleTunnelSysctls } from "./sysctls.ts";

export interface NodeNetworkOptions {
  kernel: Kernel;
  /** Name of the VXLAN device. */
  overlay: string;
  /** The node's network namespace, where it is not this process's. */
  netns?: Netns;
  /** Instead of the namespace's own. */
  sysctls?: Sysctls;
  /** Called when a new link changed what was waiting, or what failed. */
  onChange?: (waiting: readonly ObjectOutcome[]) => void;
}

/** Routes, the tunnels' devices, and what interfaces are set to: the same under both data planes. */
export interface NodeNetwork {
  /** Nothing is touched before the model is in sync. Routes that wait for an interface are written when it appears. */
  apply(delta: ModelDelta): ApplyReport;
  /** Prefixes to which packets leave by another device as soon as this delta is applied; of what was not carried out before, too. */
  rerouted(delta: ModelDelta): Net[];
  resync(): ApplyReport;
  /** Removes routes, neighbours and forwarding of an earlier life. Only after a delta that was in sync. */
  sweep(): SweepReport;
  /** What is wanted and not there yet, each with the reason. */
  waiting(): ObjectOutcome[];
  close(): void;
  /** Takes our routes and the tunnels' devices off the node. */
  remove(): Promise<void>;
}

export function createNodeNetwork(options: NodeNetworkOptions): NodeNetwork {
  return new KernelNetwork(options);
}

class KernelNetwork implements NodeNetwork {
  private readonly netlink: NetlinkPort;
  private readonly sysctls: Sysctls;
  private readonly overlay: string;
  private readonly onChange: NodeNetworkOptions["onChange"];
  private readonly routes: RouteTable;
  private readonly watch: Watch;
  private readonly model = new ModelCopy();
  private failed = new Map<string, CodedError>();
  /** Links routes stand on, as they were when routes were written last. */
  private links = new Map<string, Link>();
  private stale: StalePeers = { neighbours: [], forwarding: [] };
  private scheduled = false;
  private closed = false;

  constructor({ kernel, overlay, netns, sysctls, onChange }: NodeNetworkOptions) {
    this.netlink = kernel.netlink(netns);
    this.sysctls = sysctls ?? realSysctls(kernel.netns, netns);
    this.overlay = overlay;
    this.onChange = onChange;
    this.routes = new RouteTable(this.netlink);
    this.watch = this.netlink.monitor((event) => this.onEvent(event));
  }

  apply(delta: ModelDelta): ApplyReport {
    this.model.apply(delta);
    if (!this.model.inSync) return { objects: [] };
    this.settle();
    const set = delta.routes.set.map(({ cidr }) => cidr).filter((cidr) => !this.failed.has(cidr));
    return { objects: [...set.map((id) => ({ kind: "route" as const, id })), ...this.waiting()] };
  }

  rerouted({ routes: delta, inSync }: ModelDelta): Net[] {
    if (!inSync) return [];
    const routes = new Map(this.model.routes);
    applyTable(routes, delta, ({ cidr }) => cidr);
    const tunnels = {
      vxlan: this.netlink.link(this.overlay)?.index,
      ipip: this.netlink.link(IPIP)?.index,
      none: undefined,
    };
    const others = this.model.inSync ? undefined : this.routes.destinationsOfOthers();
    return [...routes.values()].flatMap(({ cidr, kind, encapsulation, nextHop }) => {
      if (kind !== "remote-workload") return [];
      const actual = this.routes.actual(cidr);
      if (actual === undefined) {
        // Without a route of ours packets follow one that BGP has learned, or the default route: never a tunnel. Nobody has
        // connections to a block that is new.
        const isOld = others?.has(cidr) ?? this.model.routes.has(cidr);
        return isOld && encapsulation !== "none" && nextHop !== null ? [cidr] : [];
      }
      if (actual.device === undefined) return [];
      const isTunnel = actual.device === tunnels.vxlan || actual.device === tunnels.ipip;
      const stays = encapsulation === "none" ? !isTunnel : actual.device === tunnels[encapsulation];
      return stays ? [] : [cidr];
    });
  }

  resync(): ApplyReport {
    if (this.model.inSync) {
      this.links.clear();
      this.routes.resync();
      this.settle();
    }
    return { objects: this.waiting() };
  }

  sweep(): SweepReport {
    if (!this.model.inSync) return { removed: [] };
    this.routes.resync();
    this.settle();
    const removed = this.routes.sweep();
    const device = this.netlink.link(this.overlay)?.index;
    if (device === undefined) return { removed };
    for (const address of this.stale.neighbours) {
      if (this.netlink.deleteNeighbour({ device, address })) removed.push(`neighbour ${address}`);
    }
    for (const entry of this.stale.forwarding) {
      if (this.netlink.deleteForwarding(entry)) removed.push(`forwarding of ${entry.mac}`);
    }
    this.stale = { neighbours: [], forwarding: [] };
    return { removed };
  }

  waiting(): ObjectOutcome[] {
    return [...this.failed].map(([id, failed]) => ({ kind: "route", id, failed }));
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.watch.close();
    this.netlink.close();
  }

  async remove(): Promise<void> {
    this.watch.close();
    this.routes.removeAll();
    for (const [name, kind] of [
      [this.overlay, "vxlan"],
      [IPIP, "ipip"],
    ] as const) {
      const link = this.netlink.link(name);
      if (link?.kind === kind) await this.netlink.deleteLink(link.index);
    }
  }

  private settle(): void {
    settleSysctls(this.sysctls, nodeSysctls(this.model.settings.ipv6));
    const without = { vxlan: this.settleOverlay(), ipip: this.settleIpip(), none: undefined };
    const links = new Map(this.netlink.links().map((link) => [link.name, link]));
    this.settleInterfaces(links);
    const { sources, absent } = sourcesOfNode(this.configuredSources(), this.netlink.addresses());
    const wanted = [...this.model.routes.values()].map((route) => ({
      ...{ cidr: route.cidr, encapsulation: route.encapsulation },
      wanted: desiredRoute(route, links, { vxlan: this.overlay, ipip: IPIP }, sources),
    }));
    this.routes.wantOnly(wanted.flatMap(({ wanted: one }) => (one && "route" in one ? [one.route] : [])));
    this.failed = this.routes.write();
    for (const address of absent) this.failed.set(address, errors.NET_SOURCE_ABSENT(address));
    for (const { cidr, encapsulation, wanted: one } of wanted) {
      if (one && "waits" in one) this.failed.set(cidr, without[encapsulation] ?? one.waits);
    }
    this.links = links;
  }

  /** Why there is none, where one is needed. */
  private settleOverlay(): CodedError | undefined {
    if (!needsOverlay(this.model)) return undefined;
    const wanted = desiredOverlay(this.model, this.netlink);
    if (!wanted) return undefined;
    try {
      const link = settleOverlay(this.netlink, this.overlay, wanted);
      this.stale = settlePeers(this.netlink, link.index, desiredPeers(this.model, wanted.local));
      settleTunnelSysctls(this.sysctls, this.overlay);
      return undefined;
    } catch (error) {
      return deviceError(this.overlay, error);
    }
  }

  private settleIpip(): CodedError | undefined {
    if (!needsIpip(this.model)) {
      this.removeIpip();
      return undefined;
    }
    const wanted = desiredIpip(this.model, this.netlink);
    if (!wanted) return undefined;
    try {
      settleIpip(this.netlink, IPIP, wanted);
      settleTunnelSysctls(this.sysctls, IPIP);
      return undefined;
    } catch (error) {
      return deviceError(IPIP, error);
    }
  }

  /** Nothing leads there any more. The kernel takes its time; if it is needed again meanwhile, the event of its end makes another. */
  private removeIpip(): void {
    const link = this.netlink.link(IPIP);
    if (link?.kind !== "ipip") return;
    this.netlink.deleteLink(link.index).catch((error: unknown) => this.failed.set("*", deviceError(IPIP, error)));
  }

  private settleInterfaces(links: ReadonlyMap<string, Link>): void {
    for (const { interfaceName, addresses } of this.model.endpoints.values()) {
      const link = links.get(interfaceName);
      if (!link || !isOurInterface(interfaceName) || this.links.get(interfaceName)?.index === link.index) continue;
      const hasHostPorts = this.hasHostPorts(addresses);
      settleSysctls(this.sysctls, podSysctls(interfaceName, { ipv6: this.model.settings.ipv6, hasHostPorts }));
    }
  }

  private hasHostPorts(nets: readonly string[]): boolean {
    const own = new Set(nets.map((net) => net.split("/")[0]));
    return [...this.model.services.values()].some(
      ({ hostPort, localBackends }) => hostPort === true && localBackends.some(({ address }) => own.has(address)),
    );
  }

  private onEvent(event: NetlinkEvent): void {
    if (this.scheduled || !this.model.inSync || !this.concerns(event)) return;
    this.scheduled = true;
    // One resync for all simultaneous events: creating one pod emits many for its link.
    setImmediate(() => {
      this.scheduled = false;
      if (this.closed) return;
      try {
        this.routes.resync();
        this.settle();
      } catch (error) {
        // No caller waits for this: it is reported with what waits, and retried with the next change.
        const why = error instanceof Error ? error.message : String(error);
        this.failed.set("*", errors.NET_NOT_WRITTEN("what an interface changed", why).from(error));
      }
      this.onChange?.(this.waiting());
    });
  }

  private concerns(event: NetlinkEvent): boolean {
    if (event.kind === "lost") return true;
    if (event.kind === "route") return event.change === "removed" && this.routes.misses(event.route);
    if (event.kind === "address") {
      return Object.values(this.configuredSources()).some((source) => event.address.address.startsWith(`${source}/`));
    }
    if (event.kind !== "link") return false;
    const { name, index, up } = event.link;
    const before = this.links.get(name);
    const same = event.change === "set" && before?.index === index && before.up === up;
    return !same && (name === this.overlay || name === IPIP || this.isPod(name));
  }

  private configuredSources(): RouteSources {
    return configuredSources(this.model.settings.configuration);
  }

  private isPod(name: string): boolean {
    return [...this.model.routes.values()].some(({ interfaceName }) => interfaceName === name);
  }
}

function deviceError(name: string, error: unknown): CodedError {
  if (error instanceof CodedError && error.code.startsWith("NET_")) return error;
  const why = error instanceof Error ? error.message : String(error);
  return errors.NET_NOT_WRITTEN(`the overlay device ${name}`, why).from(error);
}
