import { tunnelsFor } from "../api/protocol/pool-tunnels.ts";
import type { ClusterNode } from "../calc/model.ts";
import type { Pool } from "../ipam/ipam-kinds.ts";
import type { InterfaceAddress, Link } from "../kernel/netlink/netlink-port.ts";

/** What a tunnel puts in front of a packet. VXLAN: Ethernet, the outer IP header, UDP, VXLAN. IPIP: one more IPv4 header. */
const OVERHEAD = { vxlan: { v4: 50, v6: 70 }, ipip: { v4: 20, v6: 0 } } as const;
const USUAL_MTU = 1500;

/** Largest packet a pod may send so that it leaves the node in one piece, however it travels. */
export function podMtu(
  { links, addresses }: { links: readonly Link[]; addresses: readonly InterfaceAddress[] },
  { own, pattern }: { own: Pick<ClusterNode, "addressV4" | "addressV6"> | undefined; pattern?: string | undefined },
  pools: readonly Pool[],
): number {
  const hosts = [own?.addressV4, own?.addressV6].filter((one): one is string => Boolean(one));
  const devices = addresses.filter(({ address }) => hosts.includes(address.split("/")[0] as string));
  const named = pattern ? links.filter(({ name, up }) => up && new RegExp(pattern).test(name)) : [];
  const withAddress = links.filter(({ index }) => devices.some(({ device }) => device === index));
  // A pattern that names nothing here must not make packets too large.
  const mtus = (named.length > 0 ? named : withAddress).map(({ mtu }) => mtu);
  const uplink = mtus.length > 0 ? Math.min(...mtus) : USUAL_MTU;
  const overheads = pools.flatMap((pool) => {
    const family = pool.spec.cidr.includes(":") ? "v6" : "v4";
    return tunnelsFor(pool).map((tunnel) => OVERHEAD[tunnel][family]);
  });
  return uplink - Math.max(0, ...overheads);
}
