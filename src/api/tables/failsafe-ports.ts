interface FailsafePort {
  protocol: "TCP" | "UDP";
  port: number;
  net?: string;
}

/** To reach the API and its store, and to be reached by them. */
const BOTH_WAYS: readonly FailsafePort[] = [179, 2379, 2380, 5473, 6443, 6666, 6667].map((port) => ({
  protocol: "TCP",
  port,
}));

/** Ports host policy never closes, unless the data plane configuration has lists of its own: what a node cannot do without. */
export const FAILSAFE_PORTS: Readonly<Record<"inbound" | "outbound", readonly FailsafePort[]>> = {
  inbound: [{ protocol: "TCP", port: 22 }, { protocol: "UDP", port: 68 }, ...BOTH_WAYS],
  outbound: [{ protocol: "UDP", port: 53 }, { protocol: "UDP", port: 67 }, ...BOTH_WAYS],
};
