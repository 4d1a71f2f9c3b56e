import type { ClusterNode } from "../calc/model.ts";
import type { InterfaceAddress, Link } from "../kernel/netlink/netlink-port.ts";
import type { Pool } from "./stored-kinds.ts";

/** What VXLAN puts in front of a packet: Ethernet, the outer IP header, UDP, VXLAN. */
const OVERHEAD = { v4: 50, v6: 70 } as const;
const USUAL_MTU = 1500;

/** Largest packet a pod may send so that it leaves the node in one piece, however it travels. */
export function podMtu(
  links: readonly Link[],
  addresses: readonly InterfaceAddress[],
  own: Pick<ClusterNode, "addressV4" | "addressV6"> | undefined,
  pools: readonly Pool[],
): number {
  const hosts = [own?.addressV4, own?.addressV6].filter((one): one is string => Boolean(one));
  const devices = addresses.filter(({ address }) => hosts.includes(address.split("/")[0] as string));
  const mtus = links.filter(({ index }) => devices.some(({ device }) => device === index)).map(({ mtu }) => mtu);
  const uplink = mtus.length > 0 ? Math.min(...mtus) : USUAL_MTU;
  const tunnelled = pools.filter(({ spec }) => (spec.vxlanMode ?? "Never") !== "Never").map(({ spec }) => spec.cidr);
  if (tunnelled.some((cidr) => cidr.includes(":"))) return uplink - OVERHEAD.v6;
  return tunnelled.length > 0 ? uplink - OVERHEAD.v4 : uplink;
}
