import type { Noun } from "../../api/names.ts";
import type { Consequence } from "../../api/tables/fate.ts";

/** Values of fields that this release has, and that request something it does not do. */
interface UncarriedValue extends Consequence {
  noun: Noun;
  /** Lists are walked into. */
  path: string;
  /** Undefined: whatever is set. */
  values?: readonly unknown[];
  /** What `todo` says, as a merge patch that the old release accepts. */
  patch?: object;
}

const IPIP = {
  fate: "lost",
  why: "Packets stay in IPIP; agents write the routes themselves, from the blocks. Old agents learn routes by BGP: until the last agent is new, packets from old nodes to new ones are lost.",
  todo: "Convert to VXLAN while the old release runs: vendorctl migrate encapsulation --to vxlan-cross-subnet. Or accept it for a time when connections may end.",
} as const;

export const UNCARRIED_VALUES: readonly UncarriedValue[] = [
  {
    ...{ noun: "nodeStatus", path: "spec.classes", values: ["Routes"], fate: "stays" },
    why: "Agents of this release report the daemon and its sessions, not its routes.",
    todo: "Run vendor node show routes on the node.",
  },
  { noun: "ipPool", path: "spec.ipipMode", values: ["Always", "CrossSubnet"], ...IPIP },
  {
    ...{ noun: "installation", path: "spec.vendorNetwork.ipPools.encapsulation" },
    ...{ values: ["IPIP", "IPIPCrossSubnet"], ...IPIP },
  },
  {
    ...{ noun: "installation", path: "spec.vendorNetwork.linuxDataplane", values: ["Iptables"], fate: "blocks" },
    why: "The data plane of Linux itself is called Nftables: this release refuses an Installation that says Iptables.",
    todo: "Remove the field; the data plane that runs stays.",
    patch: { spec: { vendorNetwork: { linuxDataplane: null } } },
  },
  {
    ...{ noun: "installation", path: "spec.vendorNetwork.linuxDataplane", values: ["VPP"], fate: "blocks" },
    why: "This release has no VPP data plane.",
    todo: "Change to the iptables data plane while the old release runs.",
  },
  {
    ...{ noun: "installation", path: "spec.cni.ipam.type", values: ["HostLocal"], fate: "stays" },
    why: "Pods keep getting addresses of their node's podCIDR.",
    todo: "Nothing.",
  },
  {
    ...{ noun: "globalNetworkPolicy", path: "spec.doNotTrack", values: [true], fate: "lost" },
    why: "This release does not enforce untracked policies: what they deny is allowed.",
    todo: "Use preDNAT instead.",
  },
];
