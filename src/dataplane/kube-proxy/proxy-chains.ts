/**
 * What is the service proxy's among packet rules, by name: its own table in its nftables mode, its own chains in iptables.
 *
 * Chains that begin alike and are not the proxy's: the kubelet's (`KUBE-FIREWALL`, `KUBE-MARK-MASQ`, `KUBE-MARK-DROP`, `KUBE-KUBELET-CANARY`,
 * `KUBE-IPTABLES-HINT`), which would be missed by it, and by others who mark with them.
 */
export const PROXY_TABLE = "kube-proxy";

const ALONE = [
  "KUBE-SERVICES",
  "KUBE-EXTERNAL-SERVICES",
  "KUBE-NODEPORTS",
  "KUBE-FORWARD",
  "KUBE-PROXY-FIREWALL",
  "KUBE-POSTROUTING",
  "KUBE-PROXY-CANARY",
];
const OF_A_SERVICE = /^KUBE-(SVC|SVL|SEP|EXT|FW|XLB)-[A-Z0-9]+$/;

/** Tables of iptables a proxy writes to. */
export const IPTABLES_TABLES = ["nat", "filter", "mangle"] as const;

/** Where packets enter iptables: only from these does the proxy jump into its own chains. */
const KERNEL_CHAINS = new Set(["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"]);

export function isProxyChain(name: string): boolean {
  return ALONE.includes(name) || OF_A_SERVICE.test(name);
}

export function isKernelChain(name: string): boolean {
  return KERNEL_CHAINS.has(name);
}

/** Chains that only a running kube-proxy writes: the kubelets of older clusters create one of the others by themselves. */
export const SIGNS = [
  { table: "nat", chain: "KUBE-SERVICES" },
  { table: "filter", chain: "KUBE-FORWARD" },
] as const;

/**
 * What leads packets into the rules. kube-proxy adds these one by one, before it writes all rules of a table at once; when both are removed in
 * between, its chains are there without them until it checks them again, after half a minute.
 */
export const JUMPS = [
  { table: "nat", from: "PREROUTING", to: "KUBE-SERVICES" },
  { table: "nat", from: "OUTPUT", to: "KUBE-SERVICES" },
  { table: "nat", from: "POSTROUTING", to: "KUBE-POSTROUTING" },
  { table: "filter", from: "FORWARD", to: "KUBE-FORWARD" },
] as const;

/** The last rule for Services, whatever Services there are: the table is written as far as this. */
export const LAST_RULE = { table: "nat", from: "KUBE-SERVICES", to: "KUBE-NODEPORTS" } as const;
