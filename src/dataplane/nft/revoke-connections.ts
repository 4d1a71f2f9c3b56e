/**
 * Connections that policy denies now. Their nf_conntrack entries stay, marked, and every packet of them is dropped, whichever side sends it:
 * without an entry the next packet of the other side would open a connection of its own, whose replies are what policy denies.
 */

import type { DataplaneModel, Packet } from "../../calc/model.ts";
import { NetTable } from "../../calc/nets.ts";
import { evaluate, type Place } from "../../calc/policy/evaluate.ts";
import { hostEndpointOf } from "../../calc/policy/hook-policy.ts";
import type { ConntrackEntry, ConntrackPort } from "../../kernel/conntrack/conntrack-port.ts";
import type { Link, NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import { parseAddress } from "../../kit/ip.ts";
import { addressOf, isNothing, type Touched } from "./affected-connections.ts";
import { CONNECTION_MARK } from "./ruleset.ts";

const UDP = 17;
const IPIP = 4;

/** Whether any connection is left that policy denies: then the next change may be the one that allows it again. */
export async function revokeConnections(
  model: DataplaneModel,
  touched: Touched & { anyDenied: boolean },
  { conntrack, netlink }: { conntrack: ConntrackPort; netlink: NetlinkPort },
): Promise<boolean> {
  const nothing = isNothing(touched);
  if (nothing && !touched.anyDenied) return false;
  const places = new Places(model, netlink);
  const { denied } = CONNECTION_MARK;
  const flows = await conntrack.list(nothing ? { mark: denied, markMask: denied } : {});
  let left = false;
  for (const flow of flows) {
    const packet = packetOf(flow);
    const isDenied = (flow.mark & denied) !== 0;
    if (touched.gone.has(packet.source) || touched.gone.has(packet.destination)) {
      conntrack.delete(flow.original);
      continue;
    }
    if (!isDenied && !isTouched(touched, places, packet)) continue;
    const deny = isForbidden(model, places, packet);
    left ||= deny;
    const mark = (deny ? flow.mark | denied : flow.mark & ~denied) >>> 0;
    if (mark !== flow.mark) conntrack.update(flow.original, { mark });
  }
  return left;
}

function isTouched({ all, endpoints }: Touched, places: Places, { source, destination }: Packet): boolean {
  if (all) return true;
  return [source, destination].some((address) => endpoints.has(places.podAt(address) ?? ""));
}

function isForbidden(model: DataplaneModel, places: Places, packet: Packet): boolean {
  const { source, destination } = packet;
  const path = { from: places.of(source), to: places.of(destination) };
  if (path.from.at === "host" && path.to.at === "host") return false;
  // Encapsulated traffic between nodes is evaluated by its inner packet.
  const inVxlan = packet.protocol === UDP && packet.destinationPort === model.settings.vxlan.port;
  const carried = inVxlan || packet.protocol === IPIP;
  if (carried && [source, destination].every((address) => places.podAt(address) === undefined)) return false;
  return evaluate(model, packet, path).action === "deny";
}

/** The packet as it was first seen: its final destination is the source of the reply tuple. */
function packetOf({ original, reply, destinationNat }: ConntrackEntry): Packet {
  const translated = destinationNat
    ? { originalDestination: original.destination, originalDestinationPort: original.destinationPort }
    : {};
  const common = {
    ipVersion: original.source.includes(":") ? (6 as const) : (4 as const),
    protocol: original.protocol,
    source: original.source,
    destination: reply.source,
  };
  if (original.icmp) return { ...common, icmpType: original.icmp.type, icmpCode: original.icmp.code };
  const ports = { sourcePort: original.sourcePort, destinationPort: reply.sourcePort };
  return { ...common, ...ports, ...translated };
}

/** What an address is to this node. */
class Places {
  private readonly pods = new Map<string, string>();
  private readonly own: ReadonlySet<string>;
  private readonly model: DataplaneModel;
  private readonly netlink: NetlinkPort;
  private interfaces: NetTable<Link> | undefined;

  constructor(model: DataplaneModel, netlink: NetlinkPort) {
    this.model = model;
    this.netlink = netlink;
    for (const { id, addresses } of model.endpoints.values())
      for (const net of addresses) this.pods.set(addressOf(net), id);
    this.own = new Set(netlink.addresses().map(({ address }) => addressOf(address)));
  }

  podAt(address: string): string | undefined {
    return this.pods.get(address);
  }

  of(address: string): Place {
    const id = this.pods.get(address);
    if (id !== undefined) return { at: "workload", id };
    if (this.own.has(address)) return { at: "host" };
    if (this.model.hostEndpoints.size === 0) return { at: "interface", endpoint: undefined };
    const link = this.interfaceTo(address);
    const addresses = this.netlink.addresses().filter(({ device }) => device === link?.index);
    const texts = addresses.map((one) => one.address);
    return { at: "interface", endpoint: hostEndpointOf(this.model, { name: link?.name ?? "", addresses: texts }) };
  }

  /** Connection tracking does not say where a flow came in: by where answers go, then. */
  private interfaceTo(address: string): Link | undefined {
    this.interfaces ??= interfacesOf(this.netlink);
    const parsed = parseAddress(address);
    return parsed && this.interfaces.find(parsed);
  }
}

function interfacesOf(netlink: NetlinkPort): NetTable<Link> {
  const links = new Map(netlink.links().map((link) => [link.index, link]));
  const ways = new NetTable<Link>();
  for (const { destination, device } of netlink.routes({ table: 254 })) {
    const link = device === undefined ? undefined : links.get(device);
    if (link) ways.add(destination, link);
  }
  return ways;
}
