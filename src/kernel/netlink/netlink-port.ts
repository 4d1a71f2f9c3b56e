/** The port for interfaces, addresses and routes of one network namespace. */
import type { BpfProgram, Direction } from "../bpf/bpf-port.ts";
import type { Netns } from "../netns/netns-port.ts";
import type { Watch } from "../sys.ts";

export interface Link {
  readonly index: number;
  readonly name: string;
  /** `veth`, `vxlan`, `ipip`, `bridge`; undefined for hardware and loopback. */
  readonly kind: string | undefined;
  readonly mac: string | undefined;
  readonly mtu: number;
  readonly up: boolean;
  /** Of a veth: its other end, by its number in the namespace that is in. Of a vxlan: the device below. */
  readonly peer: number | undefined;
  /** The bridge it is a port of. */
  readonly master: number | undefined;
  readonly vxlan: VxlanSettings | undefined;
  readonly ipip?: IpipSettings | undefined;
}

export interface IpipSettings {
  /** The address packets are sent from, and the only one that is received at. */
  readonly local: string | undefined;
  /** The one other end; undefined: the gateway of each route. */
  readonly remote: string | undefined;
}

export interface VxlanSettings {
  readonly vni: number;
  readonly port: number;
  /** The address packets are sent from. */
  readonly local: string | undefined;
  readonly device: number | undefined;
  readonly learning: boolean;
}

export interface VethSpec {
  readonly name: string;
  readonly mac?: string;
  readonly mtu?: number;
  readonly peer: { readonly name: string; readonly mac?: string; readonly mtu?: number; readonly netns?: Netns };
}

export interface VxlanSpec {
  readonly name: string;
  readonly vni: number;
  readonly port: number;
  readonly local?: string;
  readonly device?: number;
  readonly learning?: boolean;
  readonly mac?: string;
  readonly mtu?: number;
}

/** Without another end: where a packet goes is the gateway of its route. */
export interface IpipSpec {
  readonly name: string;
  readonly local: string;
  readonly mtu?: number;
}

export interface LinkChange {
  readonly up?: boolean;
  readonly mtu?: number;
  readonly mac?: string;
  readonly name?: string;
  /** 0 takes it out of its bridge. */
  readonly master?: number;
  /** Moves it; it keeps its name and loses its addresses. */
  readonly netns?: Netns;
  /** IPv6 link-local addresses made by the kernel: `none` for pod interfaces. */
  readonly linkLocal?: "eui64" | "none";
}

export interface InterfaceAddress {
  readonly device: number;
  /** `10.0.0.1/24` */
  readonly address: string;
}

export const ROUTE_TYPES = {
  unicast: 1,
  local: 2,
  broadcast: 3,
  anycast: 4,
  multicast: 5,
  blackhole: 6,
  unreachable: 7,
  prohibit: 8,
  throw: 9,
} as const;
export type RouteType = keyof typeof ROUTE_TYPES;

export const MAIN_TABLE = 254;

export interface Route {
  /** `10.0.0.0/24`; `0.0.0.0/0` and `::/0` are the defaults. */
  readonly destination: string;
  readonly type: RouteType;
  readonly table: number;
  /** Who made it: 2 the kernel, 3 by hand, 4 at start, 80 us. */
  readonly protocol: number;
  readonly device?: number;
  readonly gateway?: string;
  readonly source?: string;
  /** Believe that the gateway is reachable, though no route says so. */
  readonly onlink?: boolean;
  readonly metric?: number;
  readonly mtu?: number;
}

/** Which routes: what is not said does not matter. */
export type RouteFilter = Partial<Pick<Route, "table" | "protocol" | "device" | "type">>;

export interface RoutingRule {
  readonly family: 4 | 6;
  readonly priority: number;
  readonly table: number;
  readonly mark?: number;
  readonly mask?: number;
  readonly source?: string;
  readonly destination?: string;
  readonly inputInterface?: string;
}

export interface Neighbour {
  readonly device: number;
  readonly address: string;
  readonly mac: string | undefined;
  readonly state: "permanent" | "reachable" | "stale" | "failed" | "other";
}

/** Behind which tunnel address a MAC is. */
export interface ForwardingEntry {
  readonly device: number;
  readonly mac: string;
  readonly destination: string;
}

export interface TrafficFilter {
  readonly device: number;
  readonly direction: Direction;
  /** Empty for those of others that have none, and are no programs. */
  readonly name: string;
  readonly priority: number;
  readonly handle: number;
  readonly programId: number | undefined;
}

export interface FilterSpec {
  readonly device: number;
  readonly direction: Direction;
  readonly name: string;
  readonly program: BpfProgram;
  readonly priority?: number;
  readonly handle?: number;
}

export type NetlinkEvent =
  | { readonly kind: "link"; readonly change: "set" | "removed"; readonly link: Link }
  | { readonly kind: "address"; readonly change: "set" | "removed"; readonly address: InterfaceAddress }
  | { readonly kind: "route"; readonly change: "set" | "removed"; readonly route: Route }
  | { readonly kind: "neighbour"; readonly change: "set" | "removed"; readonly neighbour: Neighbour }
  /** Events were lost: read everything again. */
  | { readonly kind: "lost" };

/** Removing what is already gone answers false; everything else that fails throws, with the kernel's own words where it has any. */
export interface NetlinkPort {
  links(): Link[];
  link(name: string): Link | undefined;
  addVeth(spec: VethSpec): void;
  addVxlan(spec: VxlanSpec): void;
  /** EOPNOTSUPP from a kernel without IPIP. */
  addIpip(spec: IpipSpec): void;
  addBridge(name: string): void;
  changeLink(index: number, change: LinkChange): void;
  /** Takes the kernel tens of milliseconds: off the event loop. */
  deleteLink(index: number): Promise<boolean>;

  addresses(): InterfaceAddress[];
  /** One that is there already is left as it is. */
  addAddress(address: InterfaceAddress): void;
  deleteAddress(address: InterfaceAddress): boolean;

  routes(filter?: RouteFilter): Route[];
  /** In place of one to the same destination in the same table with the same metric. */
  replaceRoute(route: Route): void;
  deleteRoute(route: Route): boolean;

  rules(): RoutingRule[];
  /** One that is there already is left as it is. */
  addRule(rule: RoutingRule): void;
  deleteRule(rule: RoutingRule): boolean;

  neighbours(): Neighbour[];
  replaceNeighbour(neighbour: Pick<Neighbour, "device" | "address"> & { readonly mac: string }): void;
  deleteNeighbour(neighbour: Pick<Neighbour, "device" | "address">): boolean;

  forwarding(): ForwardingEntry[];
  replaceForwarding(entry: ForwardingEntry): void;
  deleteForwarding(entry: ForwardingEntry): boolean;

  /** The hook for kernels without TCX; there already is fine. */
  addClsact(device: number): void;
  deleteClsact(device: number): boolean;
  filters(device: number, direction: Direction): TrafficFilter[];
  replaceFilter(filter: FilterSpec): void;
  deleteFilter(filter: Pick<TrafficFilter, "device" | "direction" | "priority" | "handle">): boolean;

  /** Reports changes, from now on, until closed. */
  monitor(onEvent: (event: NetlinkEvent) => void): Watch;
  close(): void;
}
