/**
 * What a node's agent says of its node, in the annotations of its own pod: it is gone with the pod, and must be proven again.
 * The agent writes it; the operator and the procedures act on it.
 */
export const AGENT_SAYS = {
  /** `loads`, or `refused: <why>`. */
  programs: "vendor.io/programs",
  /** The data plane that acts now: `BPF` or `Nftables`. */
  dataplane: "vendor.io/dataplane",
  /** `proven` once services were reached through eBPF by a real probe. */
  serviceRouting: "vendor.io/service-routing",
} as const;
