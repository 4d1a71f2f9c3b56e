import { type Family, V4, V6 } from "../../kit/ip.ts";
import { poolOf, tunnelPools } from "../ipam/choose-pools.ts";
import { handleId } from "../ipam/handles.ts";
import type { Ipam } from "../ipam/ipam.ts";
import type { Pool } from "../stored-kinds.ts";

const KINDS = [
  { family: V4, handle: "vxlan-tunnel-addr", type: "vxlanTunnelAddress" },
  { family: V6, handle: "vxlan-v6-tunnel-addr", type: "vxlanTunnelAddressV6" },
] as const;

/** Assigns the node an address on the overlay from each family's pools that use it, and releases those that no pool needs any more. */
export async function tunnelAddresses(
  ipam: Ipam,
  node: string,
  pools: readonly Pool[],
  nodeLabels: Readonly<Record<string, string>>,
): Promise<{ v4: string | undefined; v6: string | undefined }> {
  const found = new Map<Family, string | undefined>();
  for (const { family, handle, type } of KINDS) {
    const usable = tunnelPools(pools, family, nodeLabels);
    const owner = { handle: handleId(handle, node), facts: { node, type } };
    const have = await ipam.addressesOf(owner.handle);
    const kept = have.find((address) => poolOf(usable, address));
    if (have.some((address) => address !== kept)) await ipam.release(owner.handle, have);
    const [address] = usable.length > 0 ? await ipam.assign({ owner, ...perFamily(family, usable) }) : [];
    found.set(family, address);
  }
  return { v4: found.get(V4), v6: found.get(V6) };
}

function perFamily(family: Family, pools: readonly Pool[]): { v4: readonly Pool[]; v6: readonly Pool[] } {
  return family === V4 ? { v4: pools, v6: [] } : { v4: [], v6: pools };
}
