import { contains, formatCidr, parseAddress, parseCidr } from "../../kit/ip.ts";
import { errors, kernelError } from "../errors.ts";
import { MAIN_TABLE, type NetlinkPort, type Route } from "../netlink/netlink-port.ts";
import { existing } from "./fake-links.ts";
import { type FakeNamespace, notify } from "./fake-state.ts";

const BY_KERNEL = 2;
const LOCAL_TABLE = 255;

type RoutePart = Pick<
  NetlinkPort,
  "routes" | "replaceRoute" | "deleteRoute" | "addresses" | "addAddress" | "deleteAddress"
>;

export function fakeRoutes(namespace: FakeNamespace): RoutePart {
  return {
    addresses: () => [...namespace.addresses],
    addAddress: (address) => {
      const link = existing(namespace, address.device);
      if (!parseCidr(address.address)) throw kernelError(`adding address ${address.address}`, "EINVAL");
      if (namespace.addresses.some((other) => same(other, address))) return;
      namespace.addresses.push(address);
      notify(namespace, { kind: "address", change: "set", address });
      if (link.up) for (const route of routesOf(address)) put(namespace, route);
    },
    deleteAddress: (address) => {
      const found = namespace.addresses.find((other) => same(other, address));
      if (!found) return false;
      namespace.addresses = namespace.addresses.filter((other) => other !== found);
      notify(namespace, { kind: "address", change: "removed", address });
      const gone = routesOf(address).map(keyOf);
      namespace.routes = namespace.routes.filter(
        (route) => route.protocol !== BY_KERNEL || route.device !== address.device || !gone.includes(keyOf(route)),
      );
      return true;
    },
    routes: (filter = {}) =>
      namespace.routes.filter((route) =>
        Object.entries(filter).every(([field, value]) => value === undefined || route[field as keyof Route] === value),
      ),
    replaceRoute: (route) => {
      const made = { ...route, destination: canonicalPrefix(route.destination) };
      checkReachable(namespace, made);
      put(namespace, made);
    },
    deleteRoute: (route) => {
      const key = keyOf({ ...route, destination: canonicalPrefix(route.destination) });
      const agrees = (other: Route) =>
        keyOf(other) === key &&
        other.type === route.type &&
        other.protocol === route.protocol &&
        (route.device === undefined || other.device === route.device) &&
        (route.gateway === undefined || other.gateway === route.gateway);
      const found = namespace.routes.find(agrees);
      if (!found) return false;
      namespace.routes = namespace.routes.filter((other) => other !== found);
      notify(namespace, { kind: "route", change: "removed", route: found });
      return true;
    },
  };
}

/** What the kernel adds by itself for the addresses of an interface that is up. */
export function connectedRoutes(namespace: FakeNamespace, device: number): Route[] {
  return namespace.addresses.filter((address) => address.device === device).flatMap(routesOf);
}

function routesOf({ device, address }: { device: number; address: string }): Route[] {
  const prefix = parseCidr(address)!;
  const own = address.slice(0, address.indexOf("/"));
  const isV4 = prefix.family.bits === 32;
  const common = { protocol: BY_KERNEL, device, ...(isV4 ? { source: own } : {}) };
  const local: Route = {
    ...common,
    destination: `${own}/${prefix.family.bits}`,
    type: "local",
    table: LOCAL_TABLE,
  };
  if (prefix.length === prefix.family.bits && isV4) return [local];
  return [local, { ...common, destination: canonicalPrefix(address), type: "unicast", table: MAIN_TABLE }];
}

function put(namespace: FakeNamespace, route: Route): void {
  namespace.routes = [...namespace.routes.filter((other) => keyOf(other) !== keyOf(route)), route];
  notify(namespace, { kind: "route", change: "set", route });
}

/** One route for each destination, table and metric. */
function keyOf(route: Route): string {
  return `${route.destination} ${route.table} ${route.metric ?? 0}`;
}

function checkReachable(namespace: FakeNamespace, route: Route): void {
  if (route.type !== "unicast") return;
  const operation = `route to ${route.destination}`;
  if (route.device !== undefined) {
    if (!existing(namespace, route.device).up) throw kernelError(operation, "ENETDOWN");
  } else if (route.gateway === undefined || route.onlink) throw kernelError(operation, "ENODEV");
  if (route.gateway === undefined || route.onlink) return;
  const gateway = parseAddress(route.gateway);
  if (!gateway) throw kernelError(operation, "EINVAL");
  const reachable = namespace.routes.some((other) => {
    const prefix = parseCidr(other.destination);
    return other.type === "unicast" && other.gateway === undefined && prefix && contains(prefix, gateway);
  });
  if (!reachable) throw kernelError(operation, "ENETUNREACH", "Nexthop has invalid gateway");
}

function same(a: { device: number; address: string }, b: { device: number; address: string }): boolean {
  return a.device === b.device && a.address === b.address;
}

/** A prefix in canonical form, so that two that are equal have the same text. */
function canonicalPrefix(prefix: string): string {
  const parsed = parseCidr(prefix);
  if (!parsed) throw errors.KERNEL_BAD_VALUE("a prefix", prefix);
  return formatCidr(parsed);
}
