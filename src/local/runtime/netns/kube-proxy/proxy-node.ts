/** What kube-proxy of one node must know in addition to services. */
export interface ProxyNode {
  /** The pods' own networks: who asks a cluster address from outside of them looks like the node afterwards. */
  clusterCidrs: readonly string[];
  /** Addresses at which node ports are served, where the proxy wants a list. */
  addresses: readonly string[];
}

/** The mark, of the packet, that asks for masquerading; the same bit in every service proxy. */
export const MASQUERADE_MARK = "0x4000";
