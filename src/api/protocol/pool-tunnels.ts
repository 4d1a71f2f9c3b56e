import type { IPPool } from "../resources/ip-pool.ts";

export type Tunnel = "ipip" | "vxlan";

type Mode = "Never" | "Always" | "CrossSubnet";

/** Of a pool, written by a change of its encapsulation: the tunnels, separated by commas, that nodes keep ready in addition to the one it uses. */
export const READY_TUNNELS = "vendor.io/ready-tunnels";

/** The tunnel packets to this pool's pods travel in, and to nodes of which subnets. A pool has one at most; IPIP carries IPv4 alone. */
export function tunnelOf(
  spec: IPPool["spec"] | undefined,
): { tunnel: Tunnel; mode: Exclude<Mode, "Never"> } | undefined {
  if (spec === undefined) return undefined;
  const { vxlanMode = "Never", ipipMode = "Never", cidr } = spec;
  if (vxlanMode !== "Never") return { tunnel: "vxlan", mode: vxlanMode };
  return ipipMode === "Never" || cidr.includes(":") ? undefined : { tunnel: "ipip", mode: ipipMode };
}

/** In the words of an Installation. */
export type Encapsulation = "None" | "VXLAN" | "VXLANCrossSubnet" | "IPIP" | "IPIPCrossSubnet";

const WORDS = {
  vxlan: { Always: "VXLAN", CrossSubnet: "VXLANCrossSubnet" },
  ipip: { Always: "IPIP", CrossSubnet: "IPIPCrossSubnet" },
} as const;

export function encapsulationOf(spec: IPPool["spec"]): Encapsulation {
  const used = tunnelOf(spec);
  return used ? WORDS[used.tunnel][used.mode] : "None";
}

/** Every tunnel that a node must be able to receive for the sake of this pool. */
export function tunnelsFor({ metadata, spec }: IPPool): Tunnel[] {
  const asked = (metadata.annotations?.[READY_TUNNELS] ?? "").split(",").filter(isTunnel);
  const used = tunnelOf(spec)?.tunnel;
  return [...new Set([...(used === undefined ? [] : [used]), ...asked])].filter(
    (tunnel) => tunnel === "vxlan" || !spec.cidr.includes(":"),
  );
}

function isTunnel(word: string): word is Tunnel {
  return word === "ipip" || word === "vxlan";
}
