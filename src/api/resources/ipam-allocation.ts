import { type Cidr, formatAddress, parseCidr } from "../../kit/ip.ts";
import type { IPAMBlock } from "./ipam.ts";

/** One address of a block that is given out, and what is known of whom it was given to. */
export interface Allocation {
  ordinal: number;
  address: string;
  /** Empty where it was given out without one. */
  handle: string;
  /** The block's sequence number when it was given out: the same address given out again has another. */
  sequence: number | undefined;
  owner: AllocationOwner;
}

/** Read from the attributes `namespace`, `pod`, `service`, `node` and `type` that the allocator stores with the address. */
export type AllocationOwner =
  | { kind: "pod"; namespace: string; name: string; node: string | undefined }
  | { kind: "tunnel"; node: string }
  | { kind: "node"; node: string }
  | { kind: "service"; namespace: string; name: string }
  | { kind: "unknown" };

/** Kinds of tunnel as `type` names them: `vxlanTunnelAddress`, `ipipTunnelAddress`, `wireguardTunnelAddress`. */
const TUNNEL = /TunnelAddress(?:V6)?$/;

export function allocationsOf({ spec }: IPAMBlock): Allocation[] {
  const cidr = parseCidr(spec.cidr);
  if (!cidr) return [];
  return spec.allocations.flatMap((index, ordinal) => {
    if (index === null) return [];
    const attribute = spec.attributes[index];
    const sequence = spec.sequenceNumberForAllocation?.[String(ordinal)];
    const handle = attribute?.handle_id ?? "";
    return [{ ordinal, address: addressAt(cidr, ordinal), handle, sequence, owner: ownerOf(attribute?.secondary) }];
  });
}

/** The node a block belongs to, from its `host:NODE`; undefined without affinity, or if that is no node. */
export function affineNode({ spec }: IPAMBlock): string | undefined {
  return spec.affinity?.startsWith("host:") ? spec.affinity.slice("host:".length) : undefined;
}

function addressAt(cidr: Cidr, ordinal: number): string {
  return formatAddress({ family: cidr.family, value: cidr.base + BigInt(ordinal) });
}

function ownerOf(facts: Readonly<Record<string, string>> | undefined): AllocationOwner {
  const { namespace, pod, service, node, type } = facts ?? {};
  if (namespace && pod) return { kind: "pod", namespace, name: pod, node: node || undefined };
  if (namespace && service) return { kind: "service", namespace, name: service };
  // Of a type that is neither a pod's nor a tunnel's, a node's absence says nothing.
  if (!node || (type && !TUNNEL.test(type))) return { kind: "unknown" };
  return type ? { kind: "tunnel", node } : { kind: "node", node };
}
