import { nameOf } from "../bpf/bpf-constants.ts";
import { errnoOf } from "../errors.ts";
import type { NetlinkSocket } from "./netlink.ts";
import {
  AF_INET,
  AF_INET6,
  addressBytes,
  addressText,
  attribute,
  FLAGS,
  type NetlinkMessage,
  nested,
  prefixBytes,
  readAttributes,
  reader,
  u32,
} from "./netlink-message.ts";
import {
  MAIN_TABLE,
  type NetlinkPort,
  ROUTE_TYPES,
  type Route,
  type RouteFilter,
  type RouteType,
} from "./netlink-port.ts";

export const ROUTE_MESSAGE = { set: 24, remove: 25, get: 26 } as const;
const ATTR = {
  destination: 1,
  device: 4,
  gateway: 5,
  metric: 6,
  preferredSource: 7,
  metrics: 8,
  table: 15,
  via: 18,
} as const;
const METRIC_MTU = 2;
const SCOPE = { everywhere: 0, link: 253, host: 254, nowhere: 255 } as const;
const ONLINK = 4;
/** Entries the kernel keeps for itself. */
const CLONED = 0x200;
/** The metric IPv6 gives a route by default; read back as unset. */
const DEFAULT_METRIC_V6 = 1024;

type RoutePart = Pick<NetlinkPort, "routes" | "replaceRoute" | "deleteRoute">;

export function routesOn(socket: NetlinkSocket): RoutePart {
  return {
    routes: (filter = {}) => [AF_INET, AF_INET6].flatMap((family) => dump(socket, family, filter)),
    replaceRoute: (route) =>
      socket.request(
        `route to ${route.destination}`,
        ROUTE_MESSAGE.set,
        FLAGS.create | FLAGS.replace,
        ...encode(route, true),
      ),
    deleteRoute: (route) => {
      try {
        socket.request(`deleting route to ${route.destination}`, ROUTE_MESSAGE.remove, 0, ...encode(route, false));
        return true;
      } catch (error) {
        if (["ESRCH", "ENODEV", "ENOENT"].includes(errnoOf(error) ?? "")) return false;
        throw error;
      }
    },
  };
}

function dump(socket: NetlinkSocket, family: number, filter: RouteFilter): Route[] {
  const header = Buffer.alloc(12);
  header.writeUInt8(family, 0);
  // New kernels choose by these themselves; older ones give everything, so what comes is looked at again.
  header.writeUInt8(filter.protocol ?? 0, 5);
  const attributes = filter.table === undefined ? [] : [u32(ATTR.table, filter.table)];
  return dumpOf(socket, header, attributes)
    .filter(({ body }) => body.readUInt8(0) === family && (body.readUInt32LE(8) & CLONED) === 0)
    .map(readRoute)
    .filter((route) => matches(route, filter));
}

/** An empty table does not exist, to strict kernels. */
function dumpOf(socket: NetlinkSocket, header: Buffer, attributes: Buffer[]): NetlinkMessage[] {
  try {
    return socket.dump("listing routes", ROUTE_MESSAGE.get, header, ...attributes);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}

function matches(route: Route, filter: RouteFilter): boolean {
  return Object.entries(filter).every(([field, value]) => value === undefined || route[field as keyof Route] === value);
}

function encode(route: Route, isNew: boolean): Buffer[] {
  const { family, bytes, length } = prefixBytes(route.destination);
  const header = Buffer.alloc(12);
  header.writeUInt8(family, 0);
  header.writeUInt8(length, 1);
  header.writeUInt8(route.table < 256 ? route.table : 0, 4);
  header.writeUInt8(route.protocol, 5);
  header.writeUInt8(isNew ? scopeOf(route) : SCOPE.nowhere, 6);
  header.writeUInt8(ROUTE_TYPES[route.type], 7);
  if (isNew && route.onlink) header.writeUInt32LE(ONLINK, 8);
  const parts = [header, u32(ATTR.table, route.table)];
  if (length > 0) parts.push(attribute(ATTR.destination, bytes));
  if (route.device !== undefined) parts.push(u32(ATTR.device, route.device));
  if (route.gateway !== undefined) parts.push(gateway(family, route.gateway));
  if (route.metric !== undefined) parts.push(u32(ATTR.metric, route.metric));
  if (route.source !== undefined) parts.push(attribute(ATTR.preferredSource, addressBytes(route.source).bytes));
  if (isNew && route.mtu !== undefined) parts.push(nested(ATTR.metrics, u32(METRIC_MTU, route.mtu)));
  return parts;
}

/** An IPv4 destination behind an IPv6 neighbour is written differently. */
function gateway(family: number, address: string): Buffer {
  const via = addressBytes(address);
  if (via.family === family) return attribute(ATTR.gateway, via.bytes);
  return attribute(ATTR.via, Buffer.concat([Buffer.from([via.family, 0]), via.bytes]));
}

/** How far away a destination is; IPv4 refuses a route that contradicts itself in this, IPv6 does not look. */
function scopeOf(route: Route): number {
  if (route.type === "local") return SCOPE.host;
  return route.type === "unicast" && route.gateway === undefined ? SCOPE.link : SCOPE.everywhere;
}

export const readRoute = reader("a route", ({ body }: NetlinkMessage): Route => {
  const attributes = readAttributes(body, 12);
  const isV4 = body.readUInt8(0) === AF_INET;
  const type = nameOf(ROUTE_TYPES, body.readUInt8(7)) as RouteType;
  const destination = attributes.get(ATTR.destination) ?? Buffer.alloc(isV4 ? 4 : 16);
  const metric = attributes.get(ATTR.metric)?.readUInt32LE(0);
  const metrics = readAttributes(attributes.get(ATTR.metrics) ?? Buffer.alloc(0));
  const via = attributes.get(ATTR.gateway) ?? attributes.get(ATTR.via)?.subarray(2);
  const source = attributes.get(ATTR.preferredSource);
  // IPv6 shows loopback as the device of routes that lead nowhere.
  const leadsSomewhere = type === "unicast" || type === "local" || type === "anycast" || type === "multicast";
  return withoutUndefined({
    destination: `${addressText(destination)}/${body.readUInt8(1)}`,
    type,
    table: attributes.get(ATTR.table)?.readUInt32LE(0) ?? (body.readUInt8(4) || MAIN_TABLE),
    protocol: body.readUInt8(5),
    device: leadsSomewhere ? attributes.get(ATTR.device)?.readUInt32LE(0) : undefined,
    gateway: via && addressText(via),
    source: source && addressText(source),
    onlink: (body.readUInt32LE(8) & ONLINK) !== 0 ? true : undefined,
    metric: !isV4 && metric === DEFAULT_METRIC_V6 ? undefined : metric,
    mtu: metrics.get(METRIC_MTU)?.readUInt32LE(0),
  });
});

/** So that a route that was read equals the one that was written. */
function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T;
}
