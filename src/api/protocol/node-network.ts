import type { KubeObject } from "../object.ts";

/** Of a Node, written by its agent: how other nodes reach it and its pods. */
const NODE_NETWORK = {
  /** Its address with the length of its subnet, `10.0.0.1/24`: nodes of one subnet send to each other directly. */
  addressV4: "vendor.io/ipv4-address",
  addressV6: "vendor.io/ipv6-address",
  /** Its end of the overlay. */
  tunnelAddressV4: "vendor.io/ipv4-vxlan-address",
  tunnelAddressV6: "vendor.io/ipv6-vxlan-address",
  tunnelMac: "vendor.io/vxlan-mac",
} as const;

export type NodeNetwork = Readonly<Record<keyof typeof NODE_NETWORK, string | undefined>>;

export function readNodeNetwork({ metadata: { annotations = {} } }: KubeObject): NodeNetwork {
  return {
    addressV4: annotations[NODE_NETWORK.addressV4],
    addressV6: annotations[NODE_NETWORK.addressV6],
    tunnelAddressV4: annotations[NODE_NETWORK.tunnelAddressV4],
    tunnelAddressV6: annotations[NODE_NETWORK.tunnelAddressV6],
    tunnelMac: annotations[NODE_NETWORK.tunnelMac]?.toLowerCase(),
  };
}

/** For a patch: null where there is nothing to report. */
export function nodeNetworkAnnotations(network: NodeNetwork): Record<string, string | null> {
  const entries = Object.entries(NODE_NETWORK) as [keyof NodeNetwork, string][];
  return Object.fromEntries(entries.map(([field, annotation]) => [annotation, network[field] ?? null]));
}
