import { handleId } from "../../ipam/handles.ts";
import type { Ipam } from "../../ipam/ipam.ts";
import type { Pool } from "../../ipam/ipam-kinds.ts";
import { poolOf } from "../../ipam/pools.ts";
import { type Family, V4, V6 } from "../../kit/ip.ts";
import { tunnelPools } from "../ipam/choose-pools.ts";

/** `others`: addresses that older releases gave to a device of its own for IPIP. Connections of the node come from there. */
const KINDS = [
  { family: V4, handle: "vxlan-tunnel-addr", type: "vxlanTunnelAddress", others: ["ipip-tunnel-addr"] },
  { family: V6, handle: "vxlan-v6-tunnel-addr", type: "vxlanTunnelAddressV6", others: [] },
] as const;

/**
 * Assigns the node an address in the tunnels from each family's pools that use one, and releases those that no pool needs any more. VXLAN and IPIP
 * share it: so it stays when a pool changes from one to the other, and with it the connections of the node to pods.
 */
export async function tunnelAddresses(
  ipam: Ipam,
  node: string,
  pools: readonly Pool[],
  nodeLabels: Readonly<Record<string, string>>,
): Promise<{ v4: string | undefined; v6: string | undefined }> {
  const found = new Map<Family, string | undefined>();
  for (const { family, handle, type, others } of KINDS) {
    const usable = tunnelPools(pools, family, nodeLabels);
    const older: string[] = [];
    for (const other of others) older.push(...(await keptOf(ipam, handleId(other, node), usable)));
    const owner = { handle: handleId(handle, node), facts: { node, type } };
    const have = await ipam.addressesOf(owner.handle);
    const kept = have.find((address) => poolOf(usable, address));
    if (have.some((address) => address !== kept)) await ipam.release(owner.handle, have);
    const isNeeded = usable.length > 0 && (kept !== undefined || older.length === 0);
    const [address = older[0]] = isNeeded ? await ipam.assign({ owner, ...perFamily(family, usable) }) : [];
    found.set(family, address);
  }
  return { v4: found.get(V4), v6: found.get(V6) };
}

/** Released, unless it is from a pool that a tunnel uses. */
async function keptOf(ipam: Ipam, handle: string, usable: readonly Pool[]): Promise<string[]> {
  const have = await ipam.addressesOf(handle);
  const kept = have.filter((address) => poolOf(usable, address));
  if (kept.length < have.length) await ipam.release(handle, have);
  return kept.length < have.length ? [] : kept;
}

function perFamily(family: Family, pools: readonly Pool[]): { v4: readonly Pool[]; v6: readonly Pool[] } {
  return family === V4 ? { v4: pools, v6: [] } : { v4: [], v6: pools };
}
