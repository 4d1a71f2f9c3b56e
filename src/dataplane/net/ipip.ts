/**
 * The one IPIP device of the node. It has no other end of its own: the gateway of each route is the node that a packet goes to, so it has no
 * peers to be told of. Whose packets it takes is decided in nftables, `ipip-source`.
 */
import type { DataplaneModel } from "../../calc/model.ts";
import type { Link, NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import { CodedError } from "../../kit/errors.ts";
import { errors } from "./errors.ts";
import { foundMtu, settleAddresses } from "./overlay.ts";

/** The device, on every node that has one. */
export const IPIP = "ipip.vendor";
/** One more IPv4 header. */
const OVERHEAD = 20;

export interface DesiredIpip {
  /** Address of the node that packets are sent from, and received at. */
  local: string;
  mtu: number;
  /** The node's address in the tunnel, which its own connections to pods come from: the same as VXLAN's. */
  addresses: string[];
}

/** Undefined while the node's own address is not known. */
export function desiredIpip(model: DataplaneModel, netlink: NetlinkPort): DesiredIpip | undefined {
  const here = [...model.nodes.values()].find(({ local }) => local);
  const local = here?.addressV4;
  if (!here || !local) return undefined;
  const { addressV4 } = here.vtep;
  return {
    local,
    mtu: foundMtu(netlink, local, OVERHEAD),
    addresses: addressV4 && addressV4 !== local ? [`${addressV4}/32`] : [],
  };
}

export function settleIpip(netlink: NetlinkPort, name: string, { local, mtu, addresses }: DesiredIpip): Link {
  if (!netlink.link(name)) add(netlink, { name, local, mtu });
  const link = netlink.link(name)!;
  const have = link.ipip ? `from ${link.ipip.local ?? "anywhere"}` : `a ${link.kind ?? "device"} of another kind`;
  if (have !== `from ${local}`) throw errors.NET_OVERLAY_DIFFERS(name, have, `from ${local}`);
  if (link.mtu !== mtu) netlink.changeLink(link.index, { mtu });
  if (!link.up) netlink.changeLink(link.index, { up: true });
  settleAddresses(netlink, link.index, addresses);
  return netlink.link(name)!;
}

function add(netlink: NetlinkPort, spec: { name: string; local: string; mtu: number }): void {
  try {
    netlink.addIpip(spec);
  } catch (error) {
    if (error instanceof CodedError && error.code === "KERNEL_NOT_SUPPORTED")
      throw errors.NET_IPIP_ABSENT().from(error);
    throw error;
  }
}
