/**
 * What a node's agent says of its node, in the annotations of its own pod: it is gone with the pod, and must be proven again.
 * The agent writes it; the operator and the procedures act on it.
 */
export const AGENT_SAYS = {
  /** `loads`, or `refused: <why>`. */
  programs: "vendor.io/programs",
  /** The data plane that acts now: `BPF` or `Nftables`; `LeavingBPF` and `DrainingBPF` in between. */
  dataplane: "vendor.io/dataplane",
  /** `proven` once services were reached through eBPF by a real probe. */
  serviceRouting: "vendor.io/service-routing",
  /** `left alone` while the service proxy's rules stand beside eBPF, or `conflict: <why>` when it keeps writing what is removed. */
  serviceProxyRules: "vendor.io/service-proxy-rules",
  /** Maps of eBPF that are full, one after the other: `flows, frontends`. */
  fullMaps: "vendor.io/full-maps",
} as const;

/** Peers send such a node no clients' addresses any more, while eBPF still takes what is new there. */
export const LEAVING_EBPF = "LeavingBPF";
/** The standard data plane takes what is new; eBPF ends the connections that only it can carry, and the agent still needs all that it needs. */
export const DRAINING_EBPF = "DrainingBPF";
