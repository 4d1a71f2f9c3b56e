/** Few words, so that what is made of them often meets. */
export const NAMESPACES = ["blue", "green", "red"];
export const ACCOUNTS = ["default", "robot"];
export const LABELS = { app: ["web", "db", "cache"], env: ["prod", "test"] } as const;
export const PORT_NAMES = ["http", "dns", "admin"];
export const SERVICES = ["front", "back"];
/** Addresses of the node itself and of the other one. */
export const NODE_ADDRESSES = { "node-a": ["172.16.0.1", "fd16::1"], "node-b": ["172.16.0.2", "fd16::2"] } as const;
/** Addresses near the pods' and outside, overlapping each other. */
export const NETS_V4 = [
  "10.0.0.0/24",
  "10.0.0.0/30",
  "10.0.0.4/30",
  "10.0.0.2",
  "198.51.100.0/24",
  "198.51.100.7",
  "172.16.0.0/16",
];
export const NETS_V6 = ["fd00::/64", "fd00::/126", "2001:db8::/32", "2001:db8::7", "fd16::/64"];
