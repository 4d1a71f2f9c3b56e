import type { DataplaneConfiguration } from "../../api/resources/dataplane-configuration.ts";
import type { InterfaceAddress } from "../../kernel/netlink/netlink-port.ts";
import { formatAddress, parseAddress } from "../../kit/ip.ts";

type Configuration = Partial<DataplaneConfiguration["spec"]>;

/** Addresses that processes of the node have towards its pods, by family. */
export type RouteSources = { readonly [family in 4 | 6]?: string };

/** What is configured, in the kernel's own spelling. */
export function configuredSources({
  deviceRouteSourceAddress: v4,
  deviceRouteSourceAddressIPv6: v6,
}: Configuration = {}): RouteSources {
  const [four, six] = [v4, v6].map((text = "") => parseAddress(text));
  return { ...(four && { 4: formatAddress(four) }), ...(six && { 6: formatAddress(six) }) };
}

/** Those that the node has: the kernel refuses a route from another. */
export function sourcesOfNode(
  configured: RouteSources,
  addresses: readonly InterfaceAddress[],
): { sources: RouteSources; absent: string[] } {
  const own = new Set(addresses.map(({ address }) => address.split("/")[0]));
  const entries = Object.entries(configured);
  return {
    sources: Object.fromEntries(entries.filter(([, address]) => own.has(address))),
    absent: entries.flatMap(([, address]) => (own.has(address) ? [] : [address])),
  };
}
