/** Flows policy forbids now are taken out of connection tracking: their next packet is judged as a first one, and dropped. */
import type { ConntrackPort, Flow } from "../../kernel/conntrack-port.ts";
import type { Link, NetlinkPort } from "../../kernel/netlink-port.ts";
import { parseAddress } from "../../kit/ip.ts";
import { evaluate, type Place } from "../../policy/evaluate.ts";
import { hostEndpointOf } from "../../policy/hook-policy.ts";
import type { DataplaneModel, Packet } from "../../policy/model.ts";
import { NetTable } from "../../policy/nets.ts";
import { addressOf, isNothing, type Touched } from "./touched-flows.ts";

const UDP = 17;

/** How many were cut. */
export async function cutFlows(
  model: DataplaneModel,
  touched: Touched,
  { conntrack, netlink }: { conntrack: ConntrackPort; netlink: NetlinkPort },
): Promise<number> {
  if (isNothing(touched)) return 0;
  const places = new Places(model, netlink);
  const forbidden = (await conntrack.flows()).filter((flow) => isForbidden(model, touched, places, flow));
  return forbidden.filter(({ original }) => conntrack.delete(original)).length;
}

function isForbidden(model: DataplaneModel, touched: Touched, places: Places, flow: Flow): boolean {
  const packet = packetOf(flow);
  const { source, destination } = packet;
  if (touched.gone.has(source) || touched.gone.has(destination)) return true;
  const pods = [places.podAt(source), places.podAt(destination)];
  if (!touched.all && !pods.some((id) => id !== undefined && touched.endpoints.has(id))) return false;
  const path = { from: places.of(source), to: places.of(destination) };
  if (path.from.at === "host" && path.to.at === "host") return false;
  // What nodes carry for each other is judged inside.
  const carried = packet.protocol === UDP && packet.destinationPort === model.settings.vxlan.port;
  if (carried && pods.every((id) => id === undefined)) return false;
  return evaluate(model, packet, path).action === "deny";
}

/** As its first packet was: where it goes is told by where answers come from. */
function packetOf({ original, reply, destinationNat }: Flow): Packet {
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
  private ways: NetTable<Link> | undefined;

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
    const link = this.wayTo(address);
    const addresses = this.netlink.addresses().filter(({ device }) => device === link?.index);
    const texts = addresses.map((one) => one.address);
    return { at: "interface", endpoint: hostEndpointOf(this.model, { name: link?.name ?? "", addresses: texts }) };
  }

  /** Connection tracking does not say where a flow came in: by where answers go, then. */
  private wayTo(address: string): Link | undefined {
    this.ways ??= waysOf(this.netlink);
    const parsed = parseAddress(address);
    return parsed && this.ways.find(parsed);
  }
}

function waysOf(netlink: NetlinkPort): NetTable<Link> {
  const links = new Map(netlink.links().map((link) => [link.index, link]));
  const ways = new NetTable<Link>();
  for (const { destination, device } of netlink.routes({ table: 254 })) {
    const link = device === undefined ? undefined : links.get(device);
    if (link) ways.add(destination, link);
  }
  return ways;
}
