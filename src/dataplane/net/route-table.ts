/** Our routes against the kernel's: only what differs is written, only what is ours is removed. */
import { BIRD_ROUTES } from "../../calc/bgp/bird-config.ts";
import { MAIN_TABLE, type NetlinkPort, type Route } from "../../kernel/netlink/netlink-port.ts";
import { DeltaTable } from "../../kit/delta-table.ts";
import { CodedError } from "../../kit/errors.ts";
import { OUR_PROTOCOL, sameRoute } from "./desired-routes.ts";
import { errors } from "./errors.ts";

export class RouteTable {
  private readonly netlink: NetlinkPort;
  /** Routes of this protocol are ours. */
  private readonly protocol: number;
  private readonly table = new DeltaTable<Route>(sameRoute);
  /** Destinations of foreign routes, which a write would replace. */
  private foreign = new Set<string>();
  /** What was wanted in this life: the rest of what is ours and unwanted is an earlier one's. */
  private readonly known = new Set<string>();
  private synced = false;

  constructor(netlink: NetlinkPort, protocol: number = OUR_PROTOCOL) {
    this.netlink = netlink;
    this.protocol = protocol;
  }

  wantOnly(routes: Iterable<Route>): void {
    const entries = [...routes].map((route) => [route.destination, route] as const);
    for (const [destination] of entries) this.known.add(destination);
    this.table.wantOnly(entries);
  }

  resync(): void {
    const ours: [string, Route][] = [];
    this.foreign = new Set();
    for (const route of this.netlink.routes({ table: MAIN_TABLE })) {
      if (route.protocol === this.protocol) ours.push([route.destination, route]);
      else if (route.metric === undefined && !isOfOlderBird(route)) this.foreign.add(route.destination);
    }
    this.table.found(ours);
    this.synced = true;
  }

  /** Ours to a destination, as the kernel has it. */
  actual(destination: string): Route | undefined {
    if (!this.synced) this.resync();
    return this.table.actually(destination);
  }

  /** Of routes that other programs have written. */
  destinationsOfOthers(): Set<string> {
    const all = this.netlink.routes({ table: MAIN_TABLE });
    return new Set(all.flatMap(({ protocol, destination }) => (protocol === this.protocol ? [] : [destination])));
  }

  /** Whether a route that went away should not have. */
  misses({ destination, protocol, table }: Route): boolean {
    return protocol === this.protocol && table === MAIN_TABLE && this.table.wanted().has(destination);
  }

  /** Why something could not be written, by destination; it stays to do. */
  write(): Map<string, CodedError> {
    if (!this.synced) this.resync();
    const failed = new Map<string, CodedError>();
    this.remove(this.table.toRemove().filter((destination) => this.known.has(destination)));
    for (const [destination, route] of this.table.toWrite()) {
      if (this.foreign.has(destination)) failed.set(destination, errors.NET_ROUTE_TAKEN(destination));
      else this.writeOne(route, failed);
    }
    return failed;
  }

  /** Routes an earlier life left. */
  sweep(): string[] {
    this.resync();
    const stale = this.table.toRemove();
    this.remove(stale);
    return stale.map((destination) => `route to ${destination}`);
  }

  removeAll(): void {
    this.table.wantOnly([]);
    this.sweep();
  }

  private writeOne(route: Route, failed: Map<string, CodedError>): void {
    try {
      this.netlink.replaceRoute(route);
      this.table.wrote(route.destination, route);
    } catch (error) {
      const why = error instanceof CodedError ? error.message : String(error);
      failed.set(route.destination, errors.NET_NOT_WRITTEN(`the route to ${route.destination}`, why).from(error));
    }
  }

  private remove(destinations: readonly string[]): void {
    if (destinations.length === 0) return;
    const unwanted = new Set(destinations);
    for (const route of this.netlink.routes({ table: MAIN_TABLE, protocol: this.protocol })) {
      if (unwanted.has(route.destination)) this.netlink.deleteRoute(route);
    }
    for (const destination of destinations) {
      this.table.removed(destination);
      this.known.delete(destination);
    }
  }
}

/**
 * The BIRD of an older release wrote its routes without a metric, and left them in the kernel when it ended, so that packets went on. They
 * are replaced in one step: nobody else would ever remove them.
 */
function isOfOlderBird({ protocol }: Route): boolean {
  return protocol === BIRD_ROUTES.protocol;
}
