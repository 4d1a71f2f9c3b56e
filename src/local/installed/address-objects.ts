import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { type Cidr, formatAddress, formatCidr, overlaps, parseCidr } from "../../kit/ip.ts";
import type { OldRelease } from "../../releases/old-release.ts";
import type { InstalledNode } from "./installed-node.ts";
import { v3Object } from "./v3-object.ts";

const BLOCK_LENGTH = 26;
const BLOCK_SIZE = 2 ** (32 - BLOCK_LENGTH);

export interface Pool {
  cidr: string;
  /** The plain manifests came with IPIP, which eBPF refuses; the operator's with VXLAN. */
  encapsulation: "ipip" | "vxlan";
}

/** The pool, and for every node the block its pods and its tunnel have their addresses from. */
export function addressObjects(release: OldRelease, pool: Pool, nodes: readonly InstalledNode[]): KubeObject[] {
  const range = parseCidr(pool.cidr);
  if (!range) throw new TypeError(`"${pool.cidr}" is not a prefix`);
  return [
    v3Object("ipPool", "default-ipv4-ippool", {
      cidr: pool.cidr,
      blockSize: BLOCK_LENGTH,
      ipipMode: pool.encapsulation === "ipip" ? "Always" : "Never",
      vxlanMode: pool.encapsulation === "vxlan" ? "CrossSubnet" : "Never",
      natOutgoing: true,
      nodeSelector: "all()",
      ...(release.hasSince("v3.21") ? { allowedUses: ["Workload", "Tunnel"] } : {}),
    }),
    v3Object("ipamConfiguration", vendorNames.singleton, { strictAffinity: false, autoAllocateBlocks: true }),
    ...nodes.flatMap((node, index) => {
      const block = blockOf(node, range, index);
      return block ? blockObjects(node, block, pool) : [];
    }),
  ];
}

/** The first block of the node's own range, or one by its place among the nodes; none where the pool has no more. */
function blockOf({ podCidr }: InstalledNode, range: Cidr, index: number): Cidr | undefined {
  const own = podCidr === undefined ? undefined : parseCidr(podCidr);
  const inPool = own !== undefined && own.length <= BLOCK_LENGTH && overlaps(range, own);
  const base = inPool ? own.base : range.base + BigInt(index * BLOCK_SIZE);
  const block = { family: range.family, base, length: BLOCK_LENGTH, masked: true };
  return overlaps(range, block) ? block : undefined;
}

function blockObjects(node: InstalledNode, block: Cidr, pool: Pool): KubeObject[] {
  const cidr = formatCidr(block);
  const dashed = cidr.replace(/[./:]/g, "-");
  const handle = `${pool.encapsulation}-tunnel-addr-${node.name}`;
  const type = pool.encapsulation === "vxlan" ? "vxlanTunnelAddress" : "ipipTunnelAddress";
  return [
    v3Object("ipamBlock", dashed, {
      cidr,
      affinity: `host:${node.name}`,
      // The tunnel has the first address; the others are free.
      allocations: Array.from({ length: BLOCK_SIZE }, (_, offset) => (offset === 0 ? 0 : null)),
      unallocated: Array.from({ length: BLOCK_SIZE - 1 }, (_, offset) => offset + 1),
      attributes: [{ handle_id: handle, secondary: { node: node.name, type } }],
      sequenceNumber: 1,
      sequenceNumberForAllocation: { "0": 0 },
      deleted: false,
    }),
    v3Object("blockAffinity", `${node.name}-${dashed}`, {
      state: "confirmed",
      node: node.name,
      cidr,
      type: "host",
      deleted: false,
    }),
    v3Object("ipamHandle", handle, { handleID: handle, block: { [cidr]: 1 }, deleted: false }),
  ];
}

/** The address the node's tunnel has, if it has one. */
export function tunnelAddresses(node: InstalledNode, pool: Pool, index: number): string[] {
  const range = parseCidr(pool.cidr);
  const block = range && blockOf(node, range, index);
  return block ? [formatAddress({ family: block.family, value: block.base })] : [];
}
