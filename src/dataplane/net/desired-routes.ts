import { isOurInterface } from "../../api/protocol/pod-network.ts";
import type { Tunnel } from "../../api/protocol/pool-tunnels.ts";
import type { DataplaneModel, Route } from "../../calc/model.ts";
import type { Route as KernelRoute, Link } from "../../kernel/netlink/netlink-port.ts";
import { MAIN_TABLE } from "../../kernel/netlink/netlink-port.ts";
import type { CodedError } from "../../kit/errors.ts";
import { errors } from "./errors.ts";
import type { RouteSources } from "./route-sources.ts";

/** Routes of this protocol are ours, and no others. */
export const OUR_PROTOCOL = 80;

export type DesiredRoute = { route: KernelRoute } | { waits: CodedError };

/** The kernel route for one route of the model; undefined if the kernel has it already, from itself or from another CNI plugin, or if the next hop is not known yet. */
export function desiredRoute(
  route: Route,
  links: ReadonlyMap<string, Link>,
  tunnels: Readonly<Record<Tunnel, string>>,
  sources: RouteSources = {},
): DesiredRoute | undefined {
  const common = { destination: route.cidr, type: "unicast", table: MAIN_TABLE, protocol: OUR_PROTOCOL } as const;
  switch (route.kind) {
    case "local-workload": {
      if (!isOurInterface(route.interfaceName ?? "")) return undefined;
      const link = links.get(route.interfaceName ?? "");
      if (!link?.up) return { waits: errors.NET_INTERFACE_ABSENT(route.cidr, route.interfaceName ?? "of no name") };
      const source = sources[route.cidr.includes(":") ? 6 : 4];
      return { route: { ...common, device: link.index, ...(source === undefined ? {} : { source }) } };
    }
    case "blackhole":
      return { route: { ...common, type: "blackhole" } };
    case "remote-workload":
      if (route.nextHop === null) return undefined;
      if (route.encapsulation === "none") return { route: { ...common, gateway: route.nextHop } };
      return overTunnel(common, route.nextHop, links.get(tunnels[route.encapsulation]));
    // A tunnel address may be from a block of another node, or of none: it always has a route of its own.
    case "remote-host":
      if (!route.tunnel || route.encapsulation === "none") return undefined;
      // VXLAN knows the node behind an address of the overlay, IPIP the node's own.
      if (route.encapsulation === "vxlan") return overTunnel(common, addressOf(route.cidr), links.get(tunnels.vxlan));
      return route.nextHop === null ? undefined : overTunnel(common, route.nextHop, links.get(tunnels.ipip));
    case "local-host":
    case "pool":
      return undefined;
  }
}

function overTunnel(common: Omit<KernelRoute, "gateway">, gateway: string, device: Link | undefined): DesiredRoute {
  if (!device?.up) return { waits: errors.NET_OVERLAY_ABSENT(common.destination) };
  return { route: { ...common, gateway, device: device.index, onlink: true } };
}

/** Whether anything goes, or may come, through VXLAN. */
export function needsOverlay({ routes, settings }: DataplaneModel): boolean {
  if (settings.dataplane === "BPF" || settings.tunnels.includes("vxlan")) return true;
  return [...routes.values()].some(({ encapsulation }) => encapsulation === "vxlan");
}

/** The eBPF data plane has no IPIP. */
export function needsIpip({ settings }: DataplaneModel): boolean {
  return settings.dataplane !== "BPF" && settings.tunnels.includes("ipip");
}

/** `direct` routes say only the gateway: the kernel adds the device it found, which then does not count as a difference. */
export function sameRoute(wanted: KernelRoute, found: KernelRoute): boolean {
  return (
    wanted.type === found.type &&
    wanted.gateway === found.gateway &&
    wanted.source === found.source &&
    (wanted.onlink ?? false) === (found.onlink ?? false) &&
    (wanted.device === undefined || wanted.device === found.device)
  );
}

function addressOf(net: string): string {
  return net.slice(0, net.lastIndexOf("/"));
}
