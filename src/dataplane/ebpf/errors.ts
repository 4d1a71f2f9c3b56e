import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  EBPF_BAD_MODEL: {
    means: "The eBPF data plane got a state that it cannot express. This is a bug.",
    example: ["a rule without an action"],
    say: (what: string) => `the model cannot be put into effect: ${what}`,
    fix: () => "this is a fault of the service, please report it",
  },
  EBPF_INTERVAL_RUNS: {
    means:
      "The sums of an interval of the flow logs were asked for, or were to be forgotten, while it is being counted. This is a bug.",
    example: [12],
    say: (interval: number) => `interval ${interval} of the flow logs has not ended`,
    fix: () => "this is a fault of the service, please report it",
  },
  EBPF_POLICY_TOO_LARGE: {
    means:
      "The policies of one endpoint are too large for the programs that a packet may pass through in the kernel. Its traffic is denied.",
    example: ["pod shop/web-1", 40, 32],
    say: (who: string, parts: number, most: number) =>
      `the policy of ${who} needs ${parts} programs, and a packet can pass through ${most}`,
    fix: () => "put its addresses into a NetworkSet and select that, instead of one rule for each",
  },
  EBPF_NO_SLOTS: {
    means: "A node has more different policy programs than the kernel can hold. Endpoints that do not fit are denied.",
    example: [16384],
    say: (most: number) => `all ${most} places for policy programs are taken`,
    fix: () => "fewer pods, or fewer different policies, on this node",
  },
  EBPF_INTERFACE_ABSENT: {
    means: "Programs are to be attached to an interface that the node does not have.",
    example: ["cali1234567890a"],
    say: (name: string) => `there is no interface ${name} on this node`,
    fix: () => "if it stays, delete the pod it belongs to: it has no network since its node was cleaned",
  },
  EBPF_INTERFACE_NOT_ETHERNET: {
    means:
      "The interface with the node's address is not Ethernet, for example a tunnel. eBPF cannot serve node ports or host policy there.",
    example: ["tun0", "10.8.0.2"],
    say: (name: string, address: string) =>
      `the interface ${name} has the node's address ${address} and no Ethernet headers: eBPF serves nothing there`,
    fix: () => "give the Node an InternalIP of an Ethernet interface, or use the nftables data plane on this node",
  },
  EBPF_KERNEL_LACKS: {
    means: "The kernel of a node is too old, or was built without something that eBPF needs.",
    example: ["bpf_fib_lookup"],
    say: (what: string) => `this kernel has no ${what}, which this needs`,
    fix: () => "use the nftables data plane on this node, or a newer kernel: 5.10 has everything",
  },
  EBPF_KERNEL_REFUSES: {
    means: "The kernel of a node did not accept a program or an attachment of the eBPF data plane.",
    example: ["the program of interface eth0"],
    say: (what: string) => `the kernel refused ${what}`,
    fix: () => "vendorctl check --for switch",
  },
  SERVICE_ADDRESS_TAKEN: {
    means: "Two Services have the same address and port. Only one of them is served there.",
    example: ["shop/web", "192.0.2.7:80", "shop/old-web"],
    say: (id: string, address: string, winner: string) => `${id} does not answer on ${address}: ${winner} does`,
    fix: () => "give one of the two services another address",
  },
  SERVICE_MAP_FULL: {
    means:
      "The BPF maps of a node have no free entry for another Service or backend. The Service is not served on that node.",
    example: ["shop/web", "services", 65536],
    say: (id: string, map: string, most: number) =>
      `${id} does not fit: all ${most} entries of the map ${map} are taken`,
    fix: () => "fewer services or backends in the cluster",
  },
});
