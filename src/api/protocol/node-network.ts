/** Of a Node, written by its agent: how other nodes reach it and its pods. */
export const NODE_NETWORK = {
  /** Its address with the length of its subnet, `10.0.0.1/24`: nodes of one subnet send to each other directly. */
  addressV4: "vendor.io/ipv4-address",
  addressV6: "vendor.io/ipv6-address",
  /** Its end of the overlay. */
  tunnelAddressV4: "vendor.io/ipv4-vxlan-address",
  tunnelAddressV6: "vendor.io/ipv6-vxlan-address",
  tunnelMac: "vendor.io/vxlan-mac",
} as const;
