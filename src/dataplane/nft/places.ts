import type { DataplaneModel } from "../../calc/model.ts";
import { NetTable } from "../../calc/nets.ts";
import type { Place } from "../../calc/policy/evaluate.ts";
import { hostEndpointOf } from "../../calc/policy/hook-policy.ts";
import type { Link, NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import { parseAddress } from "../../kit/ip.ts";
import { addressOf } from "./affected-connections.ts";

/** What of the node is read. */
export type NodeLinks = Pick<NetlinkPort, "addresses" | "links" | "routes">;

/** What an address is to this node. */
export class Places {
  private readonly pods = new Map<string, string>();
  private readonly own: ReadonlySet<string>;
  private readonly model: DataplaneModel;
  private readonly netlink: NodeLinks;
  private interfaces: NetTable<Link> | undefined;

  constructor(model: DataplaneModel, netlink: NodeLinks) {
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

function interfacesOf(netlink: NodeLinks): NetTable<Link> {
  const links = new Map(netlink.links().map((link) => [link.index, link]));
  const ways = new NetTable<Link>();
  for (const { destination, device } of netlink.routes({ table: 254 })) {
    const link = device === undefined ? undefined : links.get(device);
    if (link) ways.add(destination, link);
  }
  return ways;
}
