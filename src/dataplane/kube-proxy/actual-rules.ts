/** Rules of a service proxy in one table of one family, and how they would go. */
export interface ActualRules {
  /** `ip nat (iptables-legacy)`, `ip6 kube-proxy (nftables)`: where, for people. */
  where: string;
  /** The mode of the proxy that writes such rules. */
  mode: "iptables" | "nftables";
  /** Rules that lead into them from the kernel's own chains. */
  jumps: number;
  chains: number;
  /** Chains that foreign rules jump to: they are emptied, and stay. */
  held: readonly string[];
}

/** What can remove what it found; the kernel does all of it, or nothing. */
export interface RemovableRules extends ActualRules {
  remove(): Promise<void>;
}

export interface Observed {
  found: RemovableRules[];
  /** What could not be looked at, and why. */
  left: { where: string; why: string }[];
}
